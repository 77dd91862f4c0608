export type ExtraKey = 'esc' | 'tab' | 'up' | 'down' | 'left' | 'right' | 'home' | 'end';

const arrows: Partial<Record<ExtraKey, string>> = { up: 'A', down: 'B', right: 'C', left: 'D', home: 'H', end: 'F' };

/**
 * Returns the escape sequence for a key that phones lack.
 * @param application whether application cursor keys (DECCKM) are on
 */
export function extraKey(key: ExtraKey, application: boolean): string {
  if (key === 'esc') return '\x1b';
  if (key === 'tab') return '\t';
  return `\x1b${application ? 'O' : '['}${arrows[key]}`;
}

/** Returns the control character for a typed character, or the character itself if it has none. */
export function withCtrl(text: string): string {
  if (text.length !== 1) return text;
  const upper = text.toUpperCase();
  const code = upper.charCodeAt(0);
  if (code >= 0x40 && code <= 0x5f) return String.fromCharCode(code - 0x40);
  return text === ' ' ? '\0' : text === '?' ? '\x7f' : text;
}

/** Removes control characters except tabs and line feeds, so that pasted text cannot terminate the bracketed paste. */
export const pasteable = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');

/** Reports whether a shell without bracketed paste would run part of the text immediately. */
export const runsAtOnce = (text: string): boolean => /[\r\n]/.test(text);
