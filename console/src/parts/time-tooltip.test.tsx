import { render, screen, waitFor } from '@testing-library/react';
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
  await waitFor(() => expect(time.getAttribute('title')).toMatch(/2026/), { timeout: 5_000 });
  expect(format).toHaveBeenCalledTimes(1);
});
