import type { TerminalSession } from '@muster/protocol/http';

/** What sessions are called and said to be. Pure. */

export const statusTones = { active: 'good', closed: 'neutral', interrupted: 'warn' } as const;

/** As `4:07` or `1:02:09`. */
export function clockTime(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Seconds that a session took, or has taken so far. @param now Unix seconds */
export const secondsOf = ({ opened_at, closed_at }: TerminalSession, now: number): number =>
  Math.max(0, (closed_at ?? now) - opened_at);

/**
 * How a page joins a session: in control where it was before, or where it is this person's own and nobody is; else it
 * looks on first, and says how to take over.
 */
export function modeOf(
  session: Pick<TerminalSession, 'operator_id' | 'attached'>,
  me: string,
  asked: string,
  wasInControl: boolean,
): 'control' | 'view' {
  if (asked === 'control' || asked === 'view') return asked;
  if (wasInControl) return 'control';
  const isHeld = session.attached.some(({ mode }) => mode === 'control');
  return session.operator_id === me && !isHeld ? 'control' : 'view';
}

/** How a shell ended, for people. */
export function exitText(code: number | null, signal: string | null): string {
  if (signal !== null) return `The shell was ended by ${signal}.`;
  if (code === null) return 'The shell has ended.';
  return code === 0 ? 'The shell has ended.' : `The shell ended with exit code ${code}.`;
}

/**
 * Why a session ended, for people.
 * @param code of the notice, and what that said
 * @param reason that the session itself has; null: not known yet
 */
export function endText(code: string, message: string, reason: string | null): string {
  if (code !== 'terminal_ended') return message;
  return reason === null ? 'The session has ended.' : `The session has ended: ${reason}.`;
}
