import type { KeyboardEvent } from 'react';

/**
 * The numbers of lines are one stop of the Tab key however many they are: the arrow keys walk from one to the next. Whoever
 * draws them marks the number of each line with `data-line`.
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
