import type { KeyboardEvent } from 'react';

/**
 * Moves the focus between line numbers with the arrow keys, so that all line numbers together are one tab stop. Each
 * line number needs the attribute `data-line`.
 */
export function walkLines(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const number = (event.target as HTMLElement).closest('[data-line]');
  if (step === undefined || number === null) return;
  event.preventDefault();
  const numbers = [...event.currentTarget.querySelectorAll<HTMLElement>('[data-line]')];
  const next = numbers[numbers.indexOf(number as HTMLElement) + step];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: 'nearest' });
}
