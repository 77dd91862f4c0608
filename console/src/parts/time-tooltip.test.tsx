import { act, render, screen, waitFor } from '@testing-library/react';
import { expect, onTestFinished, test, vi } from 'vitest';

test('shows times immediately, and adds their tooltips later', async () => {
  const format = vi.spyOn(Intl, 'DateTimeFormat');
  onTestFinished(() => format.mockRestore());
  // Other test files may have loaded the module and created the date format already.
  vi.resetModules();
  const { Time } = await import('./time.tsx');
  render(<Time at="2026-01-15T08:00:00Z" />);
  const time = screen.getByText(/ ago$/);
  expect(time.getAttribute('datetime')).toBe('2026-01-15T08:00:00.000Z');
  expect(time.getAttribute('title')).toBeNull();
  expect(format).not.toHaveBeenCalled();
  await waitFor(() => expect(time.getAttribute('title')).toMatch(/2026/));
  expect(format).toHaveBeenCalledTimes(1);
});

test('updates the time when the operator returns to the tab', async () => {
  const { setClock, Time } = await import('./time.tsx');
  const start = Date.parse('2026-01-15T08:00:00Z');
  onTestFinished(() => setClock(Date.now));
  setClock(() => start + 60_000);
  render(<Time at="2026-01-15T08:00:00Z" />);
  expect(screen.getByText('1m ago')).toBeTruthy();
  setClock(() => start + 3_600_000);
  act(() => void document.dispatchEvent(new Event('visibilitychange')));
  expect(screen.getByText('1h ago')).toBeTruthy();
});
