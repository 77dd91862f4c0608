import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { agentHandlers } from './agents.ts';
import { assignmentHandlers } from './assignments.ts';
import { auditHandlers } from './audit.ts';
import { overviewHandlers } from './fleet/overview.ts';
import { kindHandlers } from './kinds.ts';
import { moduleHandlers } from './modules.ts';
import { notificationHandlers } from './notifications.ts';
import { reconcileHandlers } from './reconcile.ts';
import { secretHandlers } from './secrets.ts';
import { stateHandlers } from './state.ts';
import { tagHandlers } from './tags.ts';
import { valueHandlers } from './values.ts';
import { windowHandlers } from './windows.ts';

/** Returns the handlers that need only the domain's context. */
export const contextHandlers = (context: Context) =>
  ({
    ...agentHandlers(context),
    ...assignmentHandlers(context),
    ...auditHandlers(context),
    ...kindHandlers,
    ...moduleHandlers(context),
    ...notificationHandlers(context),
    ...overviewHandlers(context),
    ...reconcileHandlers(context),
    ...secretHandlers(context),
    ...stateHandlers(context),
    ...tagHandlers(context),
    ...valueHandlers(context),
    ...windowHandlers(context),
  }) satisfies Partial<Handlers>;
