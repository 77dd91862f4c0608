import type { RefusalCode } from '@muster/protocol/wire';

export interface Refusal {
  code: RefusalCode;
  message: string;
  /** Seconds until the next attempt; null for the agent's usual backoff. */
  retry_after_secs: number | null;
}
