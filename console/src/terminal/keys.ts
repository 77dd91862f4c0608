/** What keys send that a phone does not have, and what may be pasted. Pure. */

export type ExtraKey = 'esc' | 'tab' | 'up' | 'down' | 'left' | 'right' | 'home' | 'end';

const arrows: Partial<Record<ExtraKey, string>> = { up: 'A', down: 'B', right: 'C', left: 'D', home: 'H', end: 'F' };

/** @param application whether the program asked for the other form of the cursor keys */
export function extraKey(key: ExtraKey, application: boolean): string {
  if (key === 'esc') return '\x1b';
  if (key === 'tab') return '\t';
  return `\x1b${application ? 'O' : '['}${arrows[key]}`;
}

/** What a typed character is while Ctrl is held; itself where there is no such key. */
export function withCtrl(text: string): string {
  if (text.length !== 1) return text;
  const upper = text.toUpperCase();
  const code = upper.charCodeAt(0);
  if (code >= 0x40 && code <= 0x5f) return String.fromCharCode(code - 0x40);
  return text === ' ' ? '\0' : text === '?' ? '\x7f' : text;
}

/**
 * A pasted text without what could act on a terminal by itself: of control characters only tabs and ends of lines. So
 * nothing in it can end the bracket that tells a shell that it was pasted.
 */
export const pasteable = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');

/** Whether a shell that knows no brackets would run something of it, before anybody has read it. */
export const runsAtOnce = (text: string): boolean => /[\r\n]/.test(text);
