import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe } from 'vitest';
import { built } from '../../packaging/built.ts';
import { root } from '../../tools/suite/cli.ts';
import { openHosts } from './installed.ts';
import { test as base, noHosts } from './test.ts';
import type { TestHosts } from './test-hosts.ts';
import { Walk } from './walk.ts';

const reason = noHosts();
/** File for the commands and their output, for debugging. */
const transcript = join(root, '.cache/getting-started.txt');

const test = base.extend<{ $file: { hosts: TestHosts } }>({
  hosts: [
    // biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
    async ({}, use) => {
      const hosts = await openHosts();
      try {
        await use(hosts);
      } finally {
        await hosts.end();
      }
    },
    { scope: 'file' },
  ],
});

describe.skipIf(reason !== null)(`getting started${reason === null ? '' : ` (${reason})`}`, () => {
  test('the commands in docs/getting-started.md set up Muster and manage three machines', async ({
    hosts,
    onTestFailed,
  }) => {
    onTestFailed(() => console.error(hosts.report()));
    const names = ['control', 'web-1', 'web-2', 'db-1'];
    const [{ debs }, control, ...others] = await Promise.all([
      built(),
      ...names.map((name) => hosts.start(name, { repository: false })),
    ]);
    if (control === undefined) throw new Error('the first machine has not started');
    const machines = [control, ...others];
    // The prerequisites on the page: machines that can resolve each other's names, and a user with sudo rights.
    const known = machines.map(({ address, name }) => `${address} ${name}\n`).join('');
    for (const machine of machines) await machine.sh(`printf '127.0.0.1 localhost\n${known}' > /etc/hosts`);
    await control.sh(`
      useradd --create-home --shell /bin/bash ada
      echo 'ada ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/ada`);
    for (const path of [debs.muster, debs.orchestrator])
      copyFileSync(path, join(control.rootPath, 'home/ada', basename(path)));
    const walk = new Walk(machines, transcript);
    try {
      await walk.through('docs/getting-started.md');
    } finally {
      walk.end();
    }
  });
});
