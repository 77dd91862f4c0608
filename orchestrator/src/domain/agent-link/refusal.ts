import type { RefusalCode } from '@muster/protocol/wire';

/** Why an agent's link is refused, as sent to the agent. */
export interface Refusal {
  code: RefusalCode;
  message: string;
  /** Delay before the next attempt, seconds; null: the agent backs off as after any lost link. */
  retry_after_secs: number | null;
}
