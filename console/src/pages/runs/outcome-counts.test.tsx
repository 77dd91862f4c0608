import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { OutcomeCounts, StatusAndOutcomes } from './outcome-counts.tsx';

test('fills the bar of a run from the left, and names failures first', () => {
  const outcomes = { failed: 1, cancelled: 0, skipped: 2, running: 3, waiting: 4, succeeded: 5 };
  const { container } = render(<OutcomeCounts outcomes={outcomes} />);
  const bar = [...container.querySelectorAll<HTMLElement>('[aria-hidden] > span')];
  expect(bar.map(({ className }) => className.split(' ')[0])).toEqual([
    ...['bg-good', 'bg-bad', 'bg-info', 'bg-line-strong', 'bg-line'],
  ]);
  expect(container.textContent).toBe('1 failed · 2 skipped · 3 running · 4 waiting · 5 succeeded');
});

test('spells canceled as all other texts do, unlike the API', () => {
  const outcomes = { failed: 0, cancelled: 2, skipped: 0, running: 0, waiting: 0, succeeded: 0 };
  const { container } = render(<StatusAndOutcomes status="cancelled" outcomes={outcomes} />);
  expect(container.textContent).toBe('canceled2 canceled');
});

test('colors only the text of the counts on a phone, like the counts next to the bar', () => {
  const outcomes = { failed: 1, cancelled: 0, skipped: 19, running: 0, waiting: 0, succeeded: 0 };
  const { container } = render(<StatusAndOutcomes status="halted" outcomes={outcomes} />);
  expect(screen.getByText('1 failed').className).toBe('text-bad');
  expect(container.querySelectorAll('[class*="-soft"], .bg-raised')).toHaveLength(0);
});
