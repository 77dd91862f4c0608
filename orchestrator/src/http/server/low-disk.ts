import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';

/**
 * Decides which routes work while the disk is nearly full: routes that read, free space, stop work, or sign in. Agents'
 * reports are limited by `reportSpace` instead.
 */

/** Routes that are allowed in addition to all GET and DELETE routes. All other routes are refused. */
export const allowed: ReadonlySet<string> = new Set([
  'challenge',
  'verify',
  'renew',
  'openConsoleSession',
  'logout',
  'webLogin',
  'redeemWebLogin',
  'setAuditRetention',
  'cancelOperation',
  'cancelRun',
  'attachTerminal',
  // Operators must always be able to revoke access.
  'setAgentStatus',
  'removeOperatorReporting',
  // Only notifications that have been read can be deleted.
  'readNotification',
  'readAllNotifications',
  'matchSelector',
  'validateModule',
  'orderModules',
  'discover',
  'testChannel',
]);

export const growsNothing = ({ id, method }: Pick<Route, 'id' | 'method'>): boolean =>
  method === 'GET' || method === 'DELETE' || allowed.has(id);

/** Refuses requests that add data. With PostgreSQL, data is on another disk, and nothing is refused. */
export function refuseGrowth(route: Pick<Route, 'id' | 'method'>): void {
  if (growsNothing(route)) return;
  throw new MusterError(
    'storage_full',
    'The orchestrator’s disk is nearly full, and its free space is reserved for agent reports; nothing was changed',
  );
}
