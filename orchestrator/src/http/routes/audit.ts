import { MusterError } from '@muster/protocol';
import { listAudit } from '../../domain/audit/audit.ts';
import { exportAudit } from '../../domain/audit/audit-export.ts';
import { auditRetention, countPrunable, pruneAudit, setAuditRetention } from '../../domain/audit/audit-retention.ts';
import { createVerifier } from '../../domain/audit/audit-verification.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, Reply, Stream } from '../server/handlers.ts';

export function auditHandlers(context: Context) {
  const verifier = createVerifier(context);
  return {
    listAudit: ({ query }) => listAudit(context, query),
    exportAudit: async ({ query }) =>
      new Reply(200, new Stream(await exportAudit(context, query)), {
        'content-disposition': 'attachment; filename="audit.jsonl"',
      }),
    verifyAudit: async ({ request }) => {
      try {
        return await verifier.verify(request.signal);
      } catch (error) {
        throw request.signal.aborted ? new MusterError('draining') : error;
      }
    },
    pruneAudit: async ({ query: { before, dry_run }, session, request }) => ({
      deleted:
        dry_run === 'true'
          ? await countPrunable(context, before)
          : await pruneAudit(context, actorIn(session), before, request.signal),
    }),
    getAuditRetention: async () => ({ retention_days: await auditRetention(context) }),
    setAuditRetention: async ({ body, session }) => {
      const days = body.retention_days ?? null;
      await setAuditRetention(context, actorIn(session), days);
      return { retention_days: days };
    },
  } satisfies Partial<Handlers>;
}
