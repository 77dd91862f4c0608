import { expect, test } from 'vitest';
import type { Inspected } from '../../host/files/inspect.ts';
import { checkEntries, type ForeignEntry } from './purge.ts';

const on = (type: 'file' | 'directory', device: number): Inspected => ({ type, stamp: `${device}:1` }) as Inspected;
const entry = (type: 'file' | 'directory', own: number, device: string | null): ForeignEntry => ({
  ...{ path: '/d/a', found: on(type, own), device },
});

test('accepts a file from a lower layer of an overlay, and refuses a mounted directory and its files', () => {
  const root = on('directory', 1);
  expect(() => checkEntries(root, [entry('file', 2, null), entry('file', 2, '1')])).not.toThrow();
  for (const mounted of [entry('directory', 2, '2'), entry('file', 2, '2')])
    expect(() => checkEntries(root, [mounted])).toThrow('is on another file system');
});
