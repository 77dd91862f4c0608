import type { ErrorCode } from '../errors.ts';
import type { OperationStatus } from './operation-status.ts';

/**
 * Start of the stored error of an apply that was refused because its plan was stale. Agents, orchestrators, and clients
 * of different releases rely on it, so it never changes.
 */
const prefix = `${'plan_stale' satisfies ErrorCode}: `;

/**
 * Returns the `error` of an operation, or of an agent's result in a run, whose apply was refused because its plan was
 * stale.
 * @param reason a readable reason, such as what changed since the plan
 */
export const stalePlanError = (reason: string): string => prefix + reason;

/**
 * Reads an error that {@link stalePlanError} wrote.
 * @returns the reason, which may be empty because agents are not trusted; null for no error and for any other error
 */
export const stalePlanReason = (error: string | null): string | null =>
  error?.startsWith(prefix) === true ? error.slice(prefix.length) : null;

/**
 * Reports whether an operation is an apply that was refused after it was queued, because its plan was stale. Such an
 * apply changed nothing. If the request itself is refused, there is no operation, and the response is 409 `plan_stale`.
 */
export function endedStale(operation: {
  readonly plan_id: string | null;
  readonly status: OperationStatus;
  readonly error: string | null;
}): boolean {
  const { plan_id, status, error } = operation;
  return plan_id !== null && status === 'failed' && stalePlanReason(error) !== null;
}
