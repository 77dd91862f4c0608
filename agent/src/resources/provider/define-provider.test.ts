import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { defineProvider, type Fields } from './define-provider.ts';
import { type Machine, nothing } from './provider.ts';

const resource = { type: 'hostname', identity: 'hostname', body: { name: 'web-1' } } as ResolvedResource<'hostname'>;
const small = defineProvider<'hostname', { name: string; seenAt?: number | undefined }, { was: string }>({
  type: 'hostname',
  fields: { name: 'text', ensure: 'text?' },
  observe: ({ body }) => ({ name: body.name, seenAt: undefined }),
  diff: () => nothing(),
  remember: async (_resource, { name }) => ({ was: name }),
  apply: async () => ({}),
  observeForRemoval: ({ body }) => ({ name: body.name }),
  diffRemoval: () => nothing(),
  remove: async () => ({}),
});

test('gives a provider defaults for the members that it omits', () => {
  expect(small.recheckable).toBe(true);
  expect(small.brings(resource)).toEqual([]);
  expect(small.path(resource)).toBeNull();
  expect(small.check(resource)).toBeUndefined();
  expect(small.revealsCompletion(resource)).toBe(true);
  expect(small.inBrief({ name: 'web-1', seenAt: undefined })).toEqual({ name: 'web-1' });
  expect(small.weight({ name: 'web-1' })).toBe(0);
  expect(small.claim(resource, {} as Machine)).toBeNull();
});

test('lets a provider override the defaults with its own members', () => {
  const own = defineProvider<'hostname', { name: string; seenAt?: number | undefined }, { was: string }>({
    ...small,
    type: 'hostname',
    fields: { name: 'text', ensure: 'text?' },
    recheckable: false,
    path: ({ body }) => `/etc/${body.name}`,
  });
  expect(own.recheckable).toBe(false);
  expect(own.path(resource)).toBe('/etc/web-1');
});

test('applies and removes a single resource with `together`', async () => {
  const kinds: string[] = [];
  const { apply: _apply, remove: _remove, ...rest } = small;
  const own = defineProvider<'hostname', { name: string; seenAt?: number | undefined }, { was: string }>({
    ...rest,
    type: 'hostname',
    fields: { name: 'text', ensure: 'text?' },
    async together(items) {
      kinds.push(...items.map(({ kind, before }) => `${kind} ${before?.was ?? 'new'}`));
      return [{ message: 'done' }];
    },
  });
  const args = [{ name: 'db-1' }, nothing(), {} as Machine] as const;
  expect(await own.apply(resource, ...args)).toEqual({ message: 'done' });
  expect(await own.remove(resource, { was: 'db-1' }, ...args)).toEqual({ message: 'done' });
  expect(kinds).toEqual(['apply new', 'remove db-1']);
});

test('rejects, at compile time, a field whose shape differs from the schema', () => {
  const fields: Fields<'group-unix'> = {
    name: 'text',
    // @ts-expect-error: it is an integer.
    gid: 'text?',
    ensure: 'text?',
  };
  expect(fields).toBeDefined();
});
