import { test as base, type Stage } from '../harness.ts';
import { missing } from '../requirements.ts';
import { TestHosts } from './test-hosts.ts';

/**
 * Returns the reason why this machine cannot run test hosts; null if it can.
 * @throws Error in CI, which must be able to run them
 */
export function noHosts(): string | null {
  const reason = missing('linux', 'root', 'namespaces', 'hosts');
  if (reason !== null && process.env.CI === 'true') throw new Error(reason);
  return reason;
}

/** Runs tests with real machines. The tests in a file share one `TestHosts`, which is removed after the last test. */
export const test = base.extend<{ stage: Stage; $file: { hosts: TestHosts } }>({
  hosts: [
    // biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
    async ({}, use) => {
      const reason = noHosts();
      if (reason !== null) throw new Error(reason);
      const hosts = await TestHosts.open();
      try {
        await use(hosts);
      } finally {
        await hosts.end();
      }
    },
    { scope: 'file' },
  ],
});
