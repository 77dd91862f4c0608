import { vi } from 'vitest';

// Replaces the default limit of one second, which is too short on a busy machine. This limit only stops tests that
// hang.
const patience = { timeout: 300_000, interval: 20 };

const { waitFor } = vi;
vi.waitFor = (callback, options = {}) =>
  waitFor(callback, { ...patience, ...(typeof options === 'number' ? { timeout: options } : options) });
