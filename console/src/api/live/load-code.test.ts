import { afterEach, expect, test, vi } from 'vitest';
import { Unreachable } from '../client.ts';
import { importIfReachable } from './load-code.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Sets the time since the start of the page, and whether the orchestrator responds at each check. */
function stubPage(ms: number, ...checks: boolean[]) {
  const fetch = vi.fn(async () => {
    if (checks.shift() !== true) throw new TypeError('Failed to fetch');
    return new Response();
  });
  vi.stubGlobal('performance', { now: () => ms });
  vi.stubGlobal('fetch', fetch);
  return fetch;
}
const missing = new TypeError('Failed to fetch dynamically imported module');

test('does not send a request for a module while the orchestrator does not respond', async () => {
  stubPage(60_000, false);
  const load = vi.fn();
  await expect(importIfReachable(load)).rejects.toThrow(Unreachable);
  expect(load).not.toHaveBeenCalled();
});

test('imports without checking the orchestrator shortly after the page starts', async () => {
  const fetch = stubPage(1_000);
  expect(await importIfReachable(async () => 'code')).toBe('code');
  expect(fetch).not.toHaveBeenCalled();
});

test.each([
  ['the orchestrator lacks the module', [true, true], missing],
  ['the orchestrator stops responding', [true, false], Unreachable],
])('after a failed import, reports that %s', async (_, checks, error) => {
  stubPage(60_000, ...checks);
  await expect(importIfReachable(() => Promise.reject(missing))).rejects.toThrow(error);
});
