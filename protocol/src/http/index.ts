import * as agents from './agents.ts';
import * as assignments from './assignments.ts';
import * as audit from './audit.ts';
import * as channels from './channels.ts';
import type { Route } from './definition/route.ts';
import * as discovery from './discovery.ts';
import * as drift from './drift.ts';
import * as enrollment from './enrollment.ts';
import * as events from './events.ts';
import * as overview from './fleet/overview.ts';
import * as replicas from './fleet/replicas.ts';
import * as settings from './fleet/settings.ts';
import * as status from './fleet/status.ts';
import * as kinds from './kinds.ts';
import * as metrics from './metrics.ts';
import * as modules from './modules.ts';
import * as notifications from './notifications.ts';
import * as operations from './operations.ts';
import * as operators from './operators/operators.ts';
import * as sessions from './operators/sessions.ts';
import * as reconcile from './reconcile.ts';
import * as runs from './runs.ts';
import * as secrets from './secrets.ts';
import * as state from './state.ts';
import * as tags from './tags.ts';
import * as terminals from './terminals.ts';
import * as values from './values.ts';
import * as windows from './windows.ts';

export * from './agents.ts';
export * from './assignments.ts';
export * from './audit.ts';
export * from './channels.ts';
export * from './definition/event-types.ts';
export * from './definition/fields.ts';
export * from './definition/route.ts';
export * from './definition/tag-descriptions.ts';
export * from './discovery.ts';
export * from './drift.ts';
export * from './enrollment.ts';
export * from './events.ts';
export * from './fleet/overview.ts';
export * from './fleet/replicas.ts';
export * from './fleet/settings.ts';
export * from './fleet/status.ts';
export * from './kinds.ts';
export * from './metrics.ts';
export * from './modules.ts';
export * from './notifications.ts';
export * from './operations.ts';
export * from './operators/operators.ts';
export * from './operators/sessions.ts';
export * from './reconcile.ts';
export * from './runs.ts';
export * from './secrets.ts';
export * from './state.ts';
export * from './tags.ts';
export * from './terminals.ts';
export * from './values.ts';
export * from './windows.ts';

const isRoute = (value: unknown): value is Route =>
  typeof value === 'object' && value !== null && 'method' in value && 'answers' in value;

export const routes: readonly Route[] = [
  operators,
  sessions,
  agents,
  tags,
  enrollment,
  metrics,
  discovery,
  modules,
  assignments,
  operations,
  state,
  values,
  runs,
  drift,
  reconcile,
  overview,
  audit,
  events,
  channels,
  notifications,
  secrets,
  windows,
  settings,
  status,
  replicas,
  terminals,
  kinds,
].flatMap((noun) => Object.values(noun).filter(isRoute));
