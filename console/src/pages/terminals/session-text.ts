import type { TerminalSession } from '@muster/protocol/http';

export const statusTones = { active: 'good', closed: 'neutral', interrupted: 'warn' } as const;

export const statusWords = { active: 'open', closed: 'closed', interrupted: 'interrupted' } as const;

/** Formats seconds as a clock, for example `4:07` or `1:02:09`. */
export function clockTime(seconds: number): string {
  const total = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(total / 3600), Math.floor((total % 3600) / 60), total % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/**
 * Returns a terminal session's duration in seconds, up to now if it is open.
 * @param now Unix seconds
 */
export const secondsOf = ({ opened_at, closed_at }: TerminalSession, now: number): number =>
  Math.max(0, (closed_at ?? now) - opened_at);

/**
 * Returns the mode in which the page attaches to a terminal session: `control` if this tab had control before, or if
 * the session belongs to this operator and no one controls it; otherwise `view`, from which the operator can take
 * control.
 */
export function modeOf(
  session: Pick<TerminalSession, 'operator_id' | 'attached'>,
  me: string,
  requested: string,
  wasInControl: boolean,
): 'control' | 'view' {
  if (requested === 'control' || requested === 'view') return requested;
  if (wasInControl) return 'control';
  const isControlled = session.attached.some(({ mode }) => mode === 'control');
  return session.operator_id === me && !isControlled ? 'control' : 'view';
}

export function exitText(code: number | null, signal: string | null): string {
  if (signal !== null) return `The shell was terminated by ${signal}.`;
  if (code === null) return 'The shell has ended.';
  return code === 0 ? 'The shell has ended.' : `The shell ended with exit code ${code}.`;
}

/**
 * Describes why a terminal session was closed.
 * @param code error code in the final notice
 * @param message message in the final notice
 * @param reason the reason that the session record states; null if the record is not loaded
 */
export function endText(code: string, message: string, reason: string | null): string {
  if (code !== 'terminal_ended') return message;
  return reason === null ? 'The session has ended.' : `The session has ended: ${reason}.`;
}
