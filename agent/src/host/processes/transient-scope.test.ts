import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const module = (name: string): string => JSON.stringify(new URL(`./${name}`, import.meta.url).pathname);

/** Runs a command in a mount namespace that looks like a systemd machine and contains the given `systemd-run`. */
const underSystemd = `
  mount -t tmpfs none /run && mkdir -p /run/systemd/system &&
  mount --bind "$1" /usr/local/sbin && shift && exec "$@"`;

test.runIf(process.geteuid?.() === 0)(
  'retries without a property that an old systemd refuses, and omits the refusal from the output',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-scope-'));
    writeFileSync(
      join(directory, 'systemd-run'),
      `#!/bin/sh
case "$*" in *OOMPolicy*) echo 'Unknown assignment: OOMPolicy=continue' >&2; exit 1;; esac
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`,
      { mode: 0o755 },
    );
    const program = `
      import { systemClock } from ${module('../../../../lib/src/clock.ts')};
      import { runCommand } from ${module('run-command.ts')};
      const told = [];
      const { exitCode, stdout, stderr } = await runCommand({
        program: 'sh', args: ['-c', 'echo one; echo two >&2'], timeLimit: 20_000, outputCap: 1000,
        scope: { purpose: 'script', warn: (message) => told.push(message) },
        printed: (stream, piece) => told.push(stream + ': ' + piece),
      }, systemClock);
      console.log(JSON.stringify({ exitCode, stdout, stderr, told: told.sort() }));`;
    const node = [process.execPath, '--input-type=module', '-e', program];
    try {
      const { stdout } = await promisify(execFile)('unshare', [
        '-m',
        'sh',
        '-c',
        underSystemd,
        'sh',
        directory,
        ...node,
      ]);
      expect(JSON.parse(stdout)).toEqual({
        ...{ exitCode: 0, stdout: 'one\n', stderr: 'two\n' },
        told: ['stderr: two\n', 'stdout: one\n'],
      });
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);
