import { expiringSecrets, markExpiryReported } from '../../store/queries/secrets.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, systemActor } from '../shared/context.ts';

const atOnce = 100;
const dayMs = 86_400_000;

/**
 * Records two events for each secret: before it expires, and when it has expired.
 * @param noticeDays days from the first event to the expiry
 */
export async function announceExpiring(context: Context, noticeDays: number): Promise<void> {
  for (;;) {
    const now = context.now();
    const expiring = await context.db.all(expiringSecrets, { before_ms: now + noticeDays * dayMs, limit: atOnce });
    if (expiring.length > 0)
      await context.db.write({
        name: 'secrets/expiring',
        statements: expiring.flatMap(({ name, untold_expiry_ms: expiry }) => {
          if (expiry === null) return [];
          const at = new Date(expiry).toISOString();
          return [
            statement(markExpiryReported, { name, expiry_ms: expiry }),
            audited(context, {
              type: 'secret.expiring',
              actor: systemActor,
              target: { type: 'secret', id: name, name },
              summary: `secret ${name} ${expiry > now ? 'expires' : 'expired'} at ${at}`,
              metadata: { expires_at: at },
            }),
          ];
        }),
      });
    if (expiring.length < atOnce) return;
  }
}
