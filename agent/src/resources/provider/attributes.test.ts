import { expect, test } from 'vitest';
import type { Inspected } from '../../host/files/inspect.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import {
  changeWithAttributes,
  checkAttributes,
  concernsAttributes,
  diffAttributes,
  diffAttributesRemoval,
  rememberAttributes,
  type SeenAttributes,
} from './attributes.ts';

const changes = (seen: SeenAttributes | undefined, declared: string[] | null, isDrift = false) =>
  diffAttributes('/srv/f', seen, declared, isDrift).changes;
const change = (from: string | null, to: string | null) => [{ field: 'attributes', from, to }];
const lacks: SeenAttributes = { found: [], lacksPrograms: true };
const unsupported: SeenAttributes = { found: [], isUnsupported: true };

test('refuses attributes that it does not understand', () => {
  expect(() => checkAttributes(['immutable', 'no_dump'])).not.toThrow();
  for (const name of ['i', '+i', 'casefold', 'toString'])
    expect(() => checkAttributes([name]), name).toThrow('does not understand');
});

test('compares all attributes, in any order', () => {
  expect(changes({ found: ['append_only', 'immutable'] }, ['immutable', 'append_only'])).toEqual([]);
  expect(changes({ found: ['immutable'] }, [])).toEqual(change('immutable', null));
  expect(changes({ found: [] }, ['no_dump', 'append_only'])).toEqual(change(null, 'append_only, no_dump'));
  expect(changes({ found: ['immutable'] }, null)).toEqual([]);
  expect(changes(undefined, null)).toEqual([]);
});

test('fails on a file system without attributes, unless none are declared', () => {
  expect(() => changes(unsupported, ['immutable'])).toThrow(/\/srv\/f: its file system has none/);
  expect(changes(unsupported, [])).toEqual([]);
});

test('waits for the missing programs, which a drift check reports', () => {
  expect(diffAttributes('/srv/f', lacks, ['immutable'], false)).toEqual({
    changes: change(null, 'immutable'),
    awaits: [{ kind: 'programs', message: expect.stringContaining('install the package e2fsprogs') }],
  });
  expect(() => changes(lacks, ['immutable'], true)).toThrow('install the package e2fsprogs');
});

test('needs no programs for an empty list', async () => {
  for (const isDrift of [false, true])
    expect(diffAttributes('/srv/f', lacks, [], isDrift)).toEqual({ changes: [], awaits: [] });
  const path = '/srv/no-such-directory/f';
  const found: Inspected = { type: 'absent' };
  for (const type of ['file', 'directory'] as const) {
    const object = { path, found, type, attributes: lacks };
    // Setting attributes would fail, because there is no object.
    expect(await changeWithAttributes(object, [], { walk: new PathWalk() }, async () => 'done')).toBe('done');
  }
  expect(rememberAttributes({}, lacks)).toEqual({});
});

test('reads the attributes of an object that is declared, or that it removes after they were declared', () => {
  const succeeded = { body: { attributes: ['immutable'] } } as never;
  expect(concernsAttributes({ attributes: [] }, null)).toBe(true);
  expect(concernsAttributes({ ensure: 'absent' }, succeeded)).toBe(true);
  expect(concernsAttributes({ symlink: '/srv/g' }, succeeded)).toBe(true);
  expect(concernsAttributes({}, succeeded)).toBe(false);
  expect(concernsAttributes({ ensure: 'absent' }, null)).toBe(false);
});

test('records the first attributes, and restores them', () => {
  expect(rememberAttributes({ attributes: ['no_dump'] }, { found: [] })).toEqual({ attributes: ['no_dump'] });
  expect(rememberAttributes({}, { found: ['immutable'] })).toEqual({ attributes: ['immutable'] });
  expect(rememberAttributes({}, undefined)).toEqual({});
  expect(diffAttributesRemoval('/srv/f', ['no_dump'], { found: ['immutable'] })).toEqual(
    change('immutable', 'no_dump'),
  );
  expect(diffAttributesRemoval('/srv/f', undefined, undefined)).toEqual([]);
  expect(() => diffAttributesRemoval('/srv/f', ['no_dump'], lacks)).toThrow('install the package e2fsprogs');
  expect(diffAttributesRemoval('/srv/f', [], lacks)).toEqual([]);
});
