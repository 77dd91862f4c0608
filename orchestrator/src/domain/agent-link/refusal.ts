import type { RefusalCode } from '@muster/protocol/wire';

export interface Refusal {
  code: RefusalCode;
  message: string;
  /** Delay before the next attempt, in seconds. Null if the agent uses its usual backoff. */
  retry_after_secs: number | null;
}
