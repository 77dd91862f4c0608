import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';

/**
 * What is still done while the disk is nearly full: everything that reads, that makes room, that ends something, and that
 * lets people in to do it. What agents report is no request: `reportRoom` says how much of it is taken.
 */

/** Apart from reads and removals, which are told by their methods. */
const spared: ReadonlySet<string> = new Set([
  'challenge',
  'verify',
  'renew',
  'logout',
  'webLogin',
  'redeemWebLogin',
  'setAuditRetention',
  'cancelOperation',
  'cancelRun',
  'attachTerminal',
  // To turn an agent or an operator away must always be possible.
  'setAgentStatus',
  'removeOperatorReporting',
  // To say that a message was read is how its like are got rid of.
  'readNotification',
  'readAllNotifications',
  'matchSelector',
  'validateModule',
  'orderModules',
  'discover',
  'testChannel',
]);

export const growsNothing = ({ id, method }: Pick<Route, 'id' | 'method'>): boolean =>
  method === 'GET' || method === 'DELETE' || spared.has(id);

/** @param rowsElsewhere the database is on another machine: only what is written here itself is refused */
export function refuseGrowth(route: Pick<Route, 'id' | 'method'>, rowsElsewhere: boolean): void {
  if (growsNothing(route) || (rowsElsewhere && route.id !== 'openTerminal')) return;
  throw new MusterError(
    'storage_full',
    'The disk of the orchestrator is nearly full, and the rest is kept for what agents report; nothing was changed',
  );
}
