import {
  chmodSync,
  chownSync,
  constants,
  existsSync,
  fstatSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
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
import { syncDirectory, writeFileAtomically, writeSymlinkAtomically } from './files/atomic-write.ts';
import { expectUnchanged, inspect } from './files/inspect.ts';
import { setDirectoryOwnership, setFileOwnership, setLinkOwner } from './files/ownership.ts';
import { type OpenDirectory, PathWalk } from './files/path-walk.ts';

/** Tests the protection against other users and power failures. */

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
const own = { uid, gid, mode: 0o600 };

describe.each([
  ['sticky', 0o1777],
  ['open to all', 0o777],
])('a hard-linked file in a directory that is %s', (_, mode) => {
  test('neither reads a hard-linked file nor changes its permissions', async () => {
    const shared = `${directory}/shared`;
    mkdirSync(shared);
    chmodSync(shared, mode);
    writeFileSync(`${directory}/secret`, 'x', { mode: 0o640 });
    linkSync(`${directory}/secret`, `${shared}/f`);
    expect(() => inspect(walk, `${shared}/f`, true)).toThrow(/more than one hard link/);
    const open = walk.open(shared, 'null')!;
    const seen = inspect(walk, `${directory}/secret`, false);
    await expect(setFileOwnership(open, 'f', seen, { uid, gid, mode: 0o666 })).rejects.toThrow(
      /replaced during the apply/,
    );
    walk.release(open);
    expect(statSync(`${directory}/secret`).mode & 0o777).toBe(0o640);
    expect(inspect(walk, `${directory}/secret`, true).type).toBe('file');
  });
});

describe('writing a file', () => {
  const write = (name = 'f', beforeRename = async () => {}) =>
    writeFileAtomically(parent, name, { content: { bytes: Buffer.from('new') }, ...own, beforeRename });

  test('syncs a new file before its rename, and the directory after the rename', async () => {
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
    restore = () => restores.forEach((undo) => void undo());
    await write();
    syncDirectory(parent);
    expect(order).toEqual(['sync 3 600', 'rename', 'sync directory']);
  });

  test('syncs changed permissions to disk', async () => {
    const synced: number[] = [];
    writeFileSync(`${directory}/f`, 'x');
    restore = replaceCall('fsync', (real) =>
      Object.assign((fd: number, done: (error: NodeJS.ErrnoException | null) => void) => {
        synced.push(fstatSync(fd).mode & 0o777);
        real(fd, done);
      }, real),
    );
    await setFileOwnership(parent, 'f', inspect(walk, `${directory}/f`, false), { uid, gid, mode: 0o604 });
    expect(synced).toEqual([0o604]);
  });

  test('ignores an object that another user put in place of the temporary file', async () => {
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
    for (const link of [symlinkSync, linkSync]) {
      link(`${directory}/victim`, `${directory}/${name}`);
      await write();
      expect(readFileSync(`${directory}/victim`, 'utf8')).toBe('precious');
      expect(statSync(`${directory}/f`).nlink).toBe(1);
      expect(existsSync(`${directory}/${name}`)).toBe(false);
    }
  });

  test('does not overwrite a file that has changed since it was observed', async () => {
    writeFileSync(`${directory}/f`, 'old');
    const seen = inspect(walk, `${directory}/f`, true);
    writeFileSync(`${directory}/g`, 'theirs');
    renameSync(`${directory}/g`, `${directory}/f`);
    await expect(write('f', async () => expectUnchanged(parent, 'f', seen))).rejects.toThrow(
      /changed by another process/,
    );
    expect(readFileSync(`${directory}/f`, 'utf8')).toBe('theirs');
  });
});

describe('observing a file that another process replaces', () => {
  const replacing = (times: number, create: (path: string) => void) => {
    let left = times;
    restore = replaceCall('openSync', (real) => (path, ...rest) => {
      if (String(path).endsWith('/f') && left-- > 0) {
        create(`${directory}/new`);
        renameSync(`${directory}/new`, `${directory}/f`);
      }
      return real(path, ...rest);
    });
  };

  test('observes a file again if another process replaces it', () => {
    writeFileSync(`${directory}/f`, 'old');
    replacing(2, (path) => writeFileSync(path, 'new'));
    expect(inspect(walk, `${directory}/f`, true)).toMatchObject({
      type: 'file',
      content: { bytes: Buffer.from('new') },
    });
  });

  test('observes a file again if a link replaces it', () => {
    writeFileSync(`${directory}/f`, 'old');
    replacing(1, (path) => symlinkSync('elsewhere', path));
    expect(inspect(walk, `${directory}/f`, true)).toMatchObject({ type: 'symlink', target: 'elsewhere' });
  });

  test('refuses a file that becomes a hard link to a file elsewhere', () => {
    chmodSync(directory, 0o777);
    walk.forget();
    writeFileSync(`${directory}/secret`, 'secret');
    writeFileSync(`${directory}/f`, 'old');
    replacing(1, (path) => linkSync(`${directory}/secret`, path));
    expect(() => inspect(walk, `${directory}/f`, true)).toThrow('more than one hard link');
  });

  test('fails if another process replaces the file on every attempt', () => {
    writeFileSync(`${directory}/f`, 'old');
    replacing(Number.POSITIVE_INFINITY, (path) => writeFileSync(path, 'new'));
    expect(() => inspect(walk, `${directory}/f`, true)).toThrow('was replaced while it was being read');
  });
});

describe.runIf(uid === 0)('an object that another user swaps in between observation and change', () => {
  const user = 41_000;
  const theirs = { uid: user, gid: user, mode: 0o644 };
  let home: string;
  let held: OpenDirectory;
  beforeEach(() => {
    home = `${directory}/home`;
    mkdirSync(home);
    chownSync(home, user, user);
    held = walk.open(home, 'null')!;
    writeFileSync(`${home}/f`, 'theirs', { mode: 0o600 });
    symlinkSync('nowhere', `${home}/l`);
    mkdirSync(`${home}/d`);
    for (const name of ['f', 'l', 'd']) lchownSync(`${home}/${name}`, user, user);
  });
  afterEach(() => walk.release(held));
  /** Replaces the entry `name` with an object owned by root, right before the agent opens the entry. */
  const swap = (name: string, make: (path: string) => void) => {
    make(`${home}/precious`);
    let isDue = true;
    restore = replaceCall('openSync', (real) => (path, ...rest) => {
      if (String(path).endsWith(`/${name}`) && isDue) {
        isDue = false;
        rmSync(`${home}/${name}`, { recursive: true });
        renameSync(`${home}/precious`, `${home}/${name}`);
      }
      return real(path, ...rest);
    });
  };
  const isRoots = (name: string) => expect(lstatSync(`${home}/${name}`)).toMatchObject({ uid: 0, gid: 0 });

  test('does not change the owner of a file that another user put in its place', async () => {
    const seen = inspect(walk, `${home}/f`, false);
    // A file owned by root, with one hard link, moved here from another directory.
    swap('f', (path) => {
      writeFileSync(`${directory}/secret`, 'secret', { mode: 0o600 });
      linkSync(`${directory}/secret`, path);
      rmSync(`${directory}/secret`);
    });
    await expect(setFileOwnership(held, 'f', seen, theirs)).rejects.toThrow(/replaced during the apply; apply again/);
    isRoots('f');
    expect(statSync(`${home}/f`).mode & 0o7777).toBe(0o600);
  });

  test('does not change the owner of a file that replaces an observed link', () => {
    const seen = inspect(walk, `${home}/l`, false);
    swap('l', (path) => writeFileSync(path, 'secret', { mode: 0o600 }));
    expect(() => setLinkOwner(held, 'l', seen, theirs)).toThrow(/replaced during the apply; apply again/);
    isRoots('l');
  });

  test('does not change the owner of a file that replaces a newly created link', () => {
    writeFileSync(`${home}/precious`, 'secret', { mode: 0o600 });
    restore = replaceCall('symlinkSync', (real) => (target, path) => {
      real(target, path);
      rmSync(path);
      renameSync(`${home}/precious`, path);
    });
    expect(() => writeSymlinkAtomically(held, 'new', { target: 'nowhere', uid: user, gid: user })).toThrow(
      /replaced during the apply/,
    );
    expect(readdirSync(home).filter((name) => lstatSync(`${home}/${name}`).isFile())).toEqual(['f']);
  });

  test('does not change the owner of a directory that another user put in its place', async () => {
    const seen = inspect(walk, `${home}/d`, false);
    rmSync(`${home}/d`, { recursive: true });
    mkdirSync(`${home}/d`, { mode: 0o700 });
    writeFileSync(`${home}/d/secret`, 'secret');
    const open = walk.open(`${home}/d`, 'null')!;
    await expect(setDirectoryOwnership(open, seen, theirs)).rejects.toThrow(/replaced during the apply/);
    await expect(setDirectoryOwnership(open, 'new', theirs)).rejects.toThrow(/replaced during the apply/);
    walk.release(open);
    isRoots('d');
  });

  test('recognizes a growing log as the same file', async () => {
    const seen = inspect(walk, `${home}/f`, false);
    writeFileSync(`${home}/f`, 'more');
    await setFileOwnership(held, 'f', seen, { uid: 0, gid: 0, mode: 0o640 });
    expect(statSync(`${home}/f`)).toMatchObject({ uid: 0, gid: 0 });
  });
});
