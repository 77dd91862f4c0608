import type { TerminalSession } from '@muster/protocol/http';

/** Display texts of terminal sessions. Pure. */

export const statusTones = { active: 'good', closed: 'neutral', interrupted: 'warn' } as const;

/** Formats seconds as a clock, for example `4:07` or `1:02:09`. */
export function clockTime(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Duration of a session in seconds, until now if it is open. @param now Unix seconds */
export const secondsOf = ({ opened_at, closed_at }: TerminalSession, now: number): number =>
  Math.max(0, (closed_at ?? now) - opened_at);

/**
 * The mode in which a page joins a session: control if this tab had it before, or for one's own session without a
 * controller; otherwise view, from which the operator can take control.
 */
export function modeOf(
  session: Pick<TerminalSession, 'operator_id' | 'attached'>,
  me: string,
  requested: string,
  wasInControl: boolean,
): 'control' | 'view' {
  if (requested === 'control' || requested === 'view') return requested;
  if (wasInControl) return 'control';
  const isHeld = session.attached.some(({ mode }) => mode === 'control');
  return session.operator_id === me && !isHeld ? 'control' : 'view';
}

export function exitText(code: number | null, signal: string | null): string {
  if (signal !== null) return `The shell was ended by ${signal}.`;
  if (code === null) return 'The shell has ended.';
  return code === 0 ? 'The shell has ended.' : `The shell ended with exit code ${code}.`;
}

/**
 * Describes why a session ended.
 * @param code the code of the end notice
 * @param message the text of the end notice
 * @param reason the reason that the session itself has; null if not loaded
 */
export function endText(code: string, message: string, reason: string | null): string {
  if (code !== 'terminal_ended') return message;
  return reason === null ? 'The session has ended.' : `The session has ended: ${reason}.`;
}
