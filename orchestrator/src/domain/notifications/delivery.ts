import type { AuditEvent, ChannelTarget } from '@muster/protocol/http';

/** What is sent to a channel. */
export interface Message {
  /** The same however often it is sent: receivers know by it what they have had. */
  readonly delivery_id: string;
  readonly channel: { readonly id: string; readonly name: string };
  readonly event: AuditEvent;
}

/** How one attempt went. */
export type Attempt =
  /** The far end answered; below 300 it has the message. */
  | {
      readonly status: number;
      /** Milliseconds that the far end asks to be left alone for. */
      readonly retryAfterMs: number | null;
      /** What it said where it refused, as far as that was read: hostile text. */
      readonly text?: string;
    }
  /** It did not, for a reason in words that hold nothing secret. */
  | { readonly status: null; readonly reason: string };

/** Makes one attempt, however it goes: it never rejects. */
export type Deliver = (
  target: ChannelTarget,
  message: Message,
  limits: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<Attempt>;

export const delivered = (attempt: Attempt): attempt is Attempt & { status: number } =>
  attempt.status !== null && attempt.status >= 200 && attempt.status < 300;

/** What happened, for people. */
export function describeAttempt(attempt: Attempt): string {
  if (attempt.status === null) return attempt.reason;
  const { status } = attempt;
  const redirected = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return `the far end answered ${status}${redirected}`;
}
