import { vi } from 'vitest';

// The runner's default of one second is too short on a busy machine. The limit only ends tests that hang.
const patience = { timeout: 300_000, interval: 20 };

const { waitFor } = vi;
vi.waitFor = (callback, options = {}) =>
  waitFor(callback, { ...patience, ...(typeof options === 'number' ? { timeout: options } : options) });
