import { vi } from 'vitest';

// A second, the runner's default, is too short for what waits its turn on a busy machine. A limit only catches what hangs.
const patience = { timeout: 300_000, interval: 20 };

const { waitFor } = vi;
vi.waitFor = (callback, options = {}) =>
  waitFor(callback, { ...patience, ...(typeof options === 'number' ? { timeout: options } : options) });
