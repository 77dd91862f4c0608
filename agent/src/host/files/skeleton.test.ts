import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { replaceCall } from '../../../test/replace-call.ts';
import { PathWalk } from './path-walk.ts';
import { digestOfTree, removeIfUntouched } from './skeleton.ts';

let directory: string;
let walk: PathWalk;
let restore: () => void;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-skeleton-`);
  walk = new PathWalk();
  restore = () => {};
});
afterEach(() => {
  restore();
  walk.close();
  rmSync(directory, { recursive: true, force: true });
});

describe('an untouched home directory', () => {
  const home = () => `${directory}/home`;
  const make = () => {
    mkdirSync(`${home()}/.config`, { recursive: true });
    writeFileSync(`${home()}/.profile`, 'skeleton');
    writeFileSync(`${home()}/.config/a`, 'skeleton');
    return digestOfTree(walk, home());
  };

  test('removes an untouched home directory', () => {
    expect(removeIfUntouched(walk, home(), make())).toBe(true);
    expect(existsSync(home())).toBe(false);
  });

  test('keeps a home directory with a file that is too large to compare', () => {
    const size = 4 * 1024 * 1024 + 1;
    make();
    writeFileSync(`${home()}/large`, Buffer.alloc(size));
    const summary = digestOfTree(walk, home());
    writeFileSync(`${home()}/large`, Buffer.alloc(size, 'years of work'));
    expect(removeIfUntouched(walk, home(), summary)).toBe(false);
    expect(existsSync(`${home()}/large`)).toBe(true);
  });

  test('keeps a home directory if a file is created in it during the removal', () => {
    const summary = make();
    // The directory is listed a second time just before it is removed.
    let lists = 0;
    restore = replaceCall(
      'readdirSync',
      (real) =>
        ((...args: Parameters<typeof real>) => {
          const names = real(...args);
          if (++lists === 2) writeFileSync(`${home()}/thesis`, 'years of work');
          return names;
        }) as typeof real,
    );
    expect(removeIfUntouched(walk, home(), summary)).toBe(false);
    expect(readFileSync(`${home()}/thesis`, 'utf8')).toBe('years of work');
  });

  test('keeps a home directory if a file in it is changed during the removal', () => {
    make();
    writeFileSync(`${home()}/.a`, 'skeleton');
    const summary = digestOfTree(walk, home());
    restore = replaceCall('unlinkSync', (real) => (path) => {
      real(path);
      if (String(path).endsWith('/.profile')) writeFileSync(`${home()}/.a`, 'years of work');
    });
    expect(removeIfUntouched(walk, home(), summary)).toBe(false);
    expect(readFileSync(`${home()}/.a`, 'utf8')).toBe('years of work');
  });
});
