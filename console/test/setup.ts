import { setTimeout } from 'node:timers/promises';
import { cleanup, configure } from '@testing-library/react';
import { toast } from 'sonner';
import { afterAll, afterEach } from 'vitest';

/**
 * happy-dom does not compute a layout. Giving every element the size of a screen makes virtual lists render their rows.
 * Rows that a list measures are 40 px high.
 */

class NoResizes implements ResizeObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}
globalThis.ResizeObserver = NoResizes;

const sizes = { clientWidth: 1280, clientHeight: 800, offsetWidth: 1280, offsetHeight: 800 };
for (const [name, value] of Object.entries(sizes))
  Object.defineProperty(HTMLElement.prototype, name, {
    configurable: true,
    get(this: HTMLElement) {
      return name === 'offsetHeight' && this.getAttribute('role') === 'row' ? 40 : value;
    },
  });

Object.assign(Element.prototype, {
  scrollIntoView() {},
  setPointerCapture() {},
  releasePointerCapture() {},
  hasPointerCapture: () => false,
});
Object.assign(window, {
  scrollTo() {},
  matchMedia: (media: string) => ({
    ...{ media, matches: false, onchange: null },
    ...{ addEventListener() {}, removeEventListener() {}, dispatchEvent: () => false },
  }),
});

// Milliseconds. Equals the limit of waits in vitest.config.ts, whose only purpose is to stop tests that hang.
configure({ asyncUtilTimeout: 300_000 });

afterEach(() => {
  cleanup();
  // The toaster of the next test would show active toasts again.
  toast.dismiss();
  window.localStorage.clear();
});

/**
 * Milliseconds after which the toaster removes a closed toast (`TIME_BEFORE_UNMOUNT` in its package). Its timer
 * continues when the toaster is unmounted, and fails if it fires after the DOM of the test file was removed.
 */
const removesToastAfterMs = 200;
afterAll(async () => {
  // Node fires timers of the same duration in the order in which they started.
  if (toast.getHistory().length > 0) await setTimeout(removesToastAfterMs);
});
