import { vi } from 'vitest';

// The default limit of one second is too short on a busy machine. This limit only ends tests that hang.
const patience = { timeout: 300_000, interval: 20 };

const { waitFor } = vi;
vi.waitFor = (callback, options = {}) =>
  waitFor(callback, { ...patience, ...(typeof options === 'number' ? { timeout: options } : options) });
