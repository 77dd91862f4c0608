import { MusterError } from '@muster/protocol';

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
