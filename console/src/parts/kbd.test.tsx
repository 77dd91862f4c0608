import { render } from '@testing-library/react';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Keys } from './kbd.tsx';

test.each([
  ['MacIntel', '⌘K'],
  ['iPhone', '⌘K'],
  ['Linux x86_64', 'CtrlK'],
])('shows the keys of the palette on %s as %s', (platform, text) => {
  const spy = vi.spyOn(navigator, 'platform', 'get').mockReturnValue(platform);
  onTestFinished(() => spy.mockRestore());
  expect(render(<Keys keys="Mod K" />).container.textContent).toBe(text);
});
