import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { isRunning, type ProcessIdentity } from '../../../lib/src/process-identity.ts';
import { liveBytes } from '../../../lib/test/live-memory.ts';
import { withFilesLeft } from '../../test/few-files.ts';
import { readAccounts } from './accounts/accounts.ts';
import { makeDirectory } from './files/make-directory.ts';
import { PathWalk } from './files/path-walk.ts';
import { runCommand } from './processes/run-command.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-host-`);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('creates a directory with exactly the requested permissions, regardless of the umask', () => {
  const before = process.umask(0o077);
  try {
    makeDirectory(`${directory}/d`, 0o755);
    expect(process.umask()).toBe(0o077);
  } finally {
    process.umask(before);
  }
  expect(statSync(`${directory}/d`).mode & 0o7777).toBe(0o755);
});

test('resolves account names and IDs, using the first entry for a name', () => {
  writeFileSync(
    `${directory}/passwd`,
    'root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nweb:x:33:33::/:/bin/sh\nweb:x:44:44::/:\nbroken\n',
  );
  writeFileSync(`${directory}/group`, 'root:x:0:\nwww:x:33:web\n');
  const accounts = readAccounts(directory);
  expect([accounts.uid('web'), accounts.uid('toor'), accounts.uid('nobody'), accounts.uid('1234')]).toEqual([
    33,
    0,
    null,
    1234,
  ]);
  expect([accounts.userName(0), accounts.userName(33), accounts.userName(7)]).toEqual(['root', 'web', '7']);
  expect([accounts.gid('www'), accounts.groupName(33)]).toEqual([33, 'www']);
  expect(() => accounts.uid('99999999999')).toThrow(/too large/);
  expect(readAccounts(`${directory}/none`).uid('root')).toBeNull();
});

describe('opening directories', () => {
  test('creates and reports missing directories, and keeps using an open directory after its removal', () => {
    const made: string[] = [];
    const walk = new PathWalk((path) => made.push(path));
    expect(walk.open(`${directory}/a/b`, 'null')).toBeNull();
    expect(made).toEqual([]);
    const held = walk.open(`${directory}/a/b`, 'make')!;
    expect(made).toEqual([`${directory}/a`, `${directory}/a/b`]);
    rmSync(`${directory}/a`, { recursive: true });
    mkdirSync(`${directory}/a/b`, { recursive: true });
    expect(() => writeFileSync(held.child('f'), '')).toThrow(/ENOENT/);
    walk.release(held);
    walk.forget();
    const again = walk.open(`${directory}/a/b`, 'null')!;
    writeFileSync(again.child('f'), '');
    expect(statSync(`${directory}/a/b/f`).isFile()).toBe(true);
    walk.release(again);
    walk.close();
  });

  test('limits the number of cached open directories', () => {
    const walk = new PathWalk();
    for (let i = 0; i < 2000; i++) walk.release(walk.open(`${directory}/d${i}`, 'make')!);
    walk.close();
  });
});

describe('running programs', () => {
  const command = { timeLimit: 5000, outputCap: 1000 };

  test('reads all output, even if this process was busy when the program exited', async () => {
    const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    const busy = () => {
      // Blocks while the program exits, so that Node.js reports its exit before its output.
      spawn('sh', ['-c', 'sleep 0.1; echo']).stdout.once('data', () => block(700));
      spawn('sleep', ['0.1']).once('exit', () => block(300));
      block(300);
    };
    const args = ['-c', 'sleep 0.5; echo word'];
    const result = await runCommand({ ...command, program: 'sh', args, started: busy }, systemClock);
    expect(result.stdout).toBe('word\n');
  });

  test('reports how a program exited without waiting for its background processes', async () => {
    let identity: ProcessIdentity | null = null;
    const result = await runCommand(
      {
        ...command,
        program: 'sh',
        args: ['-c', 'sleep 600 & echo $!; kill -9 $$'],
        started: (process) => (identity = process),
      },
      systemClock,
    );
    expect(result).toMatchObject({ exitCode: null, signal: 'SIGKILL', timedOut: false });
    expect(isRunning(identity!)).toBe(false);
    const background = Number(result.stdout.trim());
    expect(() => process.kill(background, 0)).not.toThrow();
    process.kill(background, 'SIGKILL');
  });

  test('names a missing program in the error', async () => {
    await expect(runCommand({ ...command, program: 'no-such-program', args: [] }, systemClock)).rejects.toThrow(
      'no-such-program is not installed on this machine',
    );
  });

  test('decodes a character that is split between two chunks of a stream', async () => {
    const result = await runCommand({ ...command, outputCap: 12, program: 'printf', args: ['aaaaaüüü'] }, systemClock);
    expect(result.stdout).toBe('aaaaaüüü');
    expect(result.truncated).toBe(false);
  });
});

test('throws an error if the program is not executable', async () => {
  writeFileSync(`${directory}/p`, '#!/bin/sh\n');
  chmodSync(`${directory}/p`, 0o600);
  await expect(
    runCommand({ program: `${directory}/p`, args: [], timeLimit: 1000, outputCap: 10 }, systemClock),
  ).rejects.toThrow(/cannot be started/);
});

describe('the output of a program', () => {
  const shell = (text: string, outputCap = 1000) =>
    runCommand({ program: 'sh', args: ['-c', text], timeLimit: 10_000, outputCap }, systemClock);

  test('allows a program to reopen its output by path without truncating it', async () => {
    const result = await shell(
      'echo a; echo b > /dev/stdout; echo c >&2; echo d > /dev/stderr; echo e | tee /dev/stderr',
    );
    expect(result).toMatchObject({ exitCode: 0, stdout: 'a\nb\ne\n', stderr: 'c\nd\ne\n', truncated: false });
  });

  test('allows a background program to write after the agent stops reading', async () => {
    const [go, sign] = [`${directory}/go`, `${directory}/sign`];
    await shell(`(until [ -e ${go} ]; do sleep 0.05; done; seq 100000 && echo lives > ${sign}) & echo started`);
    writeFileSync(go, '');
    await expect.poll(() => existsSync(sign)).toBe(true);
  });

  test('keeps only a bounded part of the output in memory', async () => {
    const before = liveBytes();
    let [passed, maxBytes] = [0, 0];
    const result = await runCommand(
      {
        program: 'sh',
        args: ['-c', 'head -c 64000000 /dev/zero; echo end'],
        timeLimit: 60_000,
        outputCap: 1000,
        printed(_stream, piece) {
          // Measures once per megabyte.
          if (Math.floor(passed / 1e6) !== Math.floor((passed + piece.length) / 1e6))
            maxBytes = Math.max(maxBytes, liveBytes() - before);
          passed += piece.length;
        },
      },
      systemClock,
    );
    expect(result.stdout.length).toBeLessThan(1100);
    expect(result).toMatchObject({ exitCode: 0, truncated: true, stdout: expect.stringMatching(/end\n$/) });
    expect(passed).toBe(64_000_004);
    expect(maxBytes).toBeGreaterThan(0);
    expect(maxBytes).toBeLessThan(8_000_000);
  });

  test('throws an error when the limit on open files is reached', async () => {
    const command = { program: 'sh', args: ['-c', 'read go <&4'], scriptFd: 0, timeLimit: 5_000, outputCap: 10 };
    const errors: unknown[] = [];
    for (let left = 1; left < 12; left++)
      await withFilesLeft(left, () => runCommand(command, systemClock)).catch((error) => errors.push(error));
    expect(String(errors.at(-1))).toMatch(/sh cannot be started: .*EMFILE/);
  });

  test('closes all file descriptors after programs exit or fail to start', async () => {
    const open = () => readdirSync('/proc/self/fd').length;
    await shell('true');
    const before = open();
    const failed = (program: string) => runCommand({ program, args: [], timeLimit: 1, outputCap: 1 }, systemClock);
    // The number of programs is a multiple of four, so that the number of pipes kept open in reserve does not change.
    for (let i = 0; i < 4; i++) {
      await shell('echo x; sleep 0.2 &');
      await shell('echo x');
      await expect(failed('no-such')).rejects.toThrow();
      await expect(failed('a\0b')).rejects.toThrow(/null bytes/);
    }
    await expect.poll(open).toBeLessThanOrEqual(before);
  });

  test('keeps few pipes open after many programs started at the same time', async () => {
    const open = () => readdirSync('/proc/self/fd').length;
    await shell('true');
    const before = open();
    await Promise.all(Array.from({ length: 24 }, () => shell('true')));
    // At most one batch of pipes, with two ends each.
    await expect.poll(open).toBeLessThanOrEqual(before + 16);
  });

  test('starts programs that create files with the usual permissions, regardless of the agent’s umask', async () => {
    const before = process.umask(0o077);
    try {
      await shell(`touch ${directory}/f`);
      expect(process.umask()).toBe(0o077);
    } finally {
      process.umask(before);
    }
    expect(statSync(`${directory}/f`).mode & 0o777).toBe(0o644);
  });
});
