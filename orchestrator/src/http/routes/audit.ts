import { listAudit } from '../../domain/audit.ts';
import type { Context } from '../../domain/context.ts';
import type { Handlers } from '../handlers.ts';

export function auditHandlers(context: Context) {
  return {
    listAudit: ({ query }) => listAudit(context, query),
  } satisfies Partial<Handlers>;
}
