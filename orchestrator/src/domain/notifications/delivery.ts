import type { AuditEvent, ChannelTarget } from '@muster/protocol/http';

/** A message to a channel. */
export interface Message {
  /** The same for all attempts, so that receivers can detect duplicates. */
  readonly delivery_id: string;
  readonly channel: { readonly id: string; readonly name: string };
  readonly event: AuditEvent;
}

/** The result of one attempt. */
export type Attempt =
  /** The receiver responded. A status below 300 means that the message was delivered. */
  | {
      readonly status: number;
      /** Pause requested by the receiver, in milliseconds. */
      readonly retryAfterMs: number | null;
      /** Beginning of the response if the receiver refused the message. Untrusted text. */
      readonly text?: string;
    }
  /** The receiver did not respond. `reason` contains no secrets. */
  | { readonly status: null; readonly reason: string };

/** Makes one delivery attempt. Never rejects. */
export type Deliver = (
  target: ChannelTarget,
  message: Message,
  limits: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<Attempt>;

export const delivered = (attempt: Attempt): attempt is Attempt & { status: number } =>
  attempt.status !== null && attempt.status >= 200 && attempt.status < 300;

/** Describes the attempt for display. */
export function describeAttempt(attempt: Attempt): string {
  if (attempt.status === null) return attempt.reason;
  const { status } = attempt;
  const redirected = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return `the receiver answered ${status}${redirected}`;
}
