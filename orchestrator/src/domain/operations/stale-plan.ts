import { MusterError, stalePlanError } from '@muster/protocol';

/** Refuses an apply that is bound to a stale plan. */
export class StalePlan extends MusterError {
  /** When the plan was requested, in Unix seconds; null if the plan is not stored, or does not include the agent. */
  readonly plannedAt: number | null;

  /** @param detail the change since the plan, or another reason */
  constructor(detail: string | undefined, plannedAt: number | null) {
    super('plan_stale', detail);
    this.plannedAt = plannedAt;
  }
}

/** Returns a refusal as the `error` of an operation or of an agent's result in a run, which has no code of its own. */
export const errorTextOf = (refusal: MusterError): string =>
  refusal instanceof StalePlan ? stalePlanError(refusal.message) : refusal.message;
