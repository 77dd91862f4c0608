import { stalePlanReason } from '@muster/protocol/stale-plan';

/**
 * Returns an error for people. A stale plan is described in words instead of by its code.
 * @param error the `error` of an operation or of an agent's result in a run
 */
export function operationErrorText(error: string): string {
  const reason = stalePlanReason(error);
  if (reason === null) return error;
  return reason === '' ? 'the plan is stale' : `the plan is stale: ${reason}`;
}
