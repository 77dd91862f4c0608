import {
  chmodSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { replaceCall } from '../../test/replace-call.ts';
import { syncDirectory, writeFileAtomically } from './atomic-write.ts';
import { expectUnchanged, inspect } from './inspect.ts';
import { setFileOwnership } from './ownership.ts';
import { type OpenDirectory, PathWalk } from './path-walk.ts';

/** What keeps another user, or a power cut, from making the agent do harm. */

let directory: string;
let walk: PathWalk;
let parent: OpenDirectory;
let restore: () => void;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-guards-`);
  walk = new PathWalk();
  parent = walk.open(directory, 'null')!;
  restore = () => {};
});
afterEach(() => {
  restore();
  walk.release(parent);
  walk.close();
  rmSync(directory, { recursive: true, force: true });
});
const uid = process.geteuid?.() ?? 0;
const gid = process.getegid?.() ?? 0;
const ours = { uid, gid, mode: 0o600 };

describe.each([
  ['sticky', 0o1777],
  ['open to all', 0o777],
])('a second name of a file in a directory that is %s', (_, mode) => {
  test('is neither read nor given other permissions: it may be that of a file elsewhere', async () => {
    const shared = `${directory}/shared`;
    mkdirSync(shared);
    chmodSync(shared, mode);
    writeFileSync(`${directory}/secret`, 'x', { mode: 0o640 });
    linkSync(`${directory}/secret`, `${shared}/f`);
    expect(() => inspect(walk, `${shared}/f`, true)).toThrow(/more than one hard link/);
    const open = walk.open(shared, 'null')!;
    await expect(setFileOwnership(open, 'f', { uid, gid, mode: 0o666 })).rejects.toThrow(/replaced meanwhile/);
    walk.release(open);
    expect(statSync(`${directory}/secret`).mode & 0o777).toBe(0o640);
    expect(inspect(walk, `${directory}/secret`, true).type).toBe('file');
  });
});

describe('writing a file', () => {
  const write = (name = 'f', beforeRename = async () => {}) =>
    writeFileAtomically(parent, name, { content: { bytes: Buffer.from('new') }, ...ours, beforeRename });

  test('it is on disk before it takes its place, and so is the directory after it is synced', async () => {
    const order: string[] = [];
    const restores = [
      replaceCall('fsync', (real) =>
        Object.assign((fd: number, done: (error: NodeJS.ErrnoException | null) => void) => {
          order.push(`sync ${fstatSync(fd).size} ${(fstatSync(fd).mode & 0o777).toString(8)}`);
          real(fd, done);
        }, real),
      ),
      replaceCall('renameSync', (real) => (from, to) => {
        order.push('rename');
        real(from, to);
      }),
      replaceCall('fsyncSync', (real) => (fd) => {
        order.push(`sync ${fstatSync(fd).ino === statSync(directory).ino ? 'directory' : 'other'}`);
        real(fd);
      }),
    ];
    restore = () => restores.forEach((put) => void put());
    await write();
    syncDirectory(parent);
    expect(order).toEqual(['sync 3 600', 'rename', 'sync directory']);
  });

  test('permissions alone are on disk too', async () => {
    const synced: number[] = [];
    writeFileSync(`${directory}/f`, 'x');
    restore = replaceCall('fsync', (real) =>
      Object.assign((fd: number, done: (error: NodeJS.ErrnoException | null) => void) => {
        synced.push(fstatSync(fd).mode & 0o777);
        real(fd, done);
      }, real),
    );
    await setFileOwnership(parent, 'f', { uid, gid, mode: 0o604 });
    expect(synced).toEqual([0o604]);
  });

  test('what somebody put in the place of the temporary file is neither followed nor written to', async () => {
    let temporary = '';
    await write('f', async () => {});
    const restoreOpen = replaceCall('openSync', (real) => (path, flags, mode) => {
      if (String(path).endsWith('.tmp')) {
        temporary = String(path);
        expect(Number(flags) & (constants.O_EXCL | constants.O_NOFOLLOW | constants.O_CREAT)).toBe(
          constants.O_EXCL | constants.O_NOFOLLOW | constants.O_CREAT,
        );
      }
      return real(path, flags, mode);
    });
    restore = restoreOpen;
    await write();
    const name = temporary.slice(temporary.lastIndexOf('/') + 1);
    writeFileSync(`${directory}/victim`, 'precious');
    for (const put of [symlinkSync, linkSync]) {
      put(`${directory}/victim`, `${directory}/${name}`);
      await write();
      expect(readFileSync(`${directory}/victim`, 'utf8')).toBe('precious');
      expect(statSync(`${directory}/f`).nlink).toBe(1);
      expect(existsSync(`${directory}/${name}`)).toBe(false);
    }
  });

  test('what changed since it was looked at stays', async () => {
    writeFileSync(`${directory}/f`, 'old');
    const seen = inspect(walk, `${directory}/f`, true);
    writeFileSync(`${directory}/g`, 'theirs');
    renameSync(`${directory}/g`, `${directory}/f`);
    await expect(write('f', async () => expectUnchanged(parent, 'f', seen))).rejects.toThrow(
      /changed by somebody else/,
    );
    expect(readFileSync(`${directory}/f`, 'utf8')).toBe('theirs');
  });
});

describe('a file that somebody puts another in the place of while it is looked at', () => {
  const replacing = (times: number, put: (path: string) => void) => {
    let left = times;
    restore = replaceCall('openSync', (real) => (path, ...rest) => {
      if (String(path).endsWith('/f') && left-- > 0) {
        put(`${directory}/new`);
        renameSync(`${directory}/new`, `${directory}/f`);
      }
      return real(path, ...rest);
    });
  };

  test('is looked at again: neither of them is at fault', () => {
    writeFileSync(`${directory}/f`, 'old');
    replacing(2, (path) => writeFileSync(path, 'new'));
    expect(inspect(walk, `${directory}/f`, true)).toMatchObject({
      type: 'file',
      content: { bytes: Buffer.from('new') },
    });
  });

  test('also when it is a link by then', () => {
    writeFileSync(`${directory}/f`, 'old');
    replacing(1, (path) => symlinkSync('elsewhere', path));
    expect(inspect(walk, `${directory}/f`, true)).toMatchObject({ type: 'symlink', target: 'elsewhere' });
  });

  test('and is not read when it is a second name of a file elsewhere by then', () => {
    chmodSync(directory, 0o777);
    walk.forget();
    writeFileSync(`${directory}/secret`, 'secret');
    writeFileSync(`${directory}/f`, 'old');
    replacing(1, (path) => linkSync(`${directory}/secret`, path));
    expect(() => inspect(walk, `${directory}/f`, true)).toThrow('more than one hard link');
  });

  test('again and again: is told of', () => {
    writeFileSync(`${directory}/f`, 'old');
    replacing(Number.POSITIVE_INFINITY, (path) => writeFileSync(path, 'new'));
    expect(() => inspect(walk, `${directory}/f`, true)).toThrow('was replaced while it was read');
  });
});
