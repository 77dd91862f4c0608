import type { Bus } from '../../bus/bus.ts';
import { type Database, withOverrides } from '../../store/database.ts';
import { insertAuditEvent, insertAuditEventInSession } from '../../store/queries/audit.ts';
import type { AnyQuery } from '../../store/query.ts';
import type { Unit } from '../../store/transaction.ts';

const events: readonly AnyQuery[] = [insertAuditEvent, insertAuditEventInSession] as never;
const audits = ({ statements }: Unit): boolean => statements.some(({ query }) => events.includes(query));

/**
 * Wraps a database so that it publishes a hint after each transaction with an audit event. Transactions in one
 * event-loop turn share a hint.
 */
export function announcingEvents(db: Database, bus: Bus): Database {
  let announced = false;
  bus.subscribe((hint) => {
    if (hint.type === 'audited') announced = false;
  });
  return withOverrides(db, {
    async write(unit) {
      const result = await db.write(unit);
      if (!announced && audits(unit)) {
        announced = true;
        bus.publish({ type: 'audited' });
      }
      return result;
    },
  });
}
