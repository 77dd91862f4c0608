import { getKind as getKindRoute, kindWithFieldsSchema, listKinds as listKindsRoute } from '@muster/protocol/http';
import { resourceTypes } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { getKind, listKinds } from './kinds.ts';

const whole = { limit: 100, offset: 0 };
const field = (kind: string, name: string) => getKind(kind).fields.find((each) => each.name === name);

test('lists every kind that modules may use', async () => {
  const { items, more } = await listKinds(whole);
  expect(items.map(({ name }) => name)).toEqual(resourceTypes);
  expect(more).toBe(false);
  expect(items.find(({ name }) => name === 'file-windows')).toEqual({
    name: 'file-windows',
    summary: 'A file',
    platforms: ['windows'],
    executable: false,
    field_count: 4,
  });
});

test('paginates the list of kinds', async () => {
  const { items } = await listKinds(whole);
  expect(await listKinds({ limit: 2, offset: 1 })).toEqual({ items: items.slice(1, 3), more: true });
});

test.each(resourceTypes)(
  'returns %s in the shape that the API schema defines, with the listed number of fields',
  (name) => {
    const kind = getKind(name);
    expect(kindWithFieldsSchema.parse(kind)).toEqual(kind);
    expect(kind.fields).toHaveLength(kind.field_count);
    expect(kind.example).toContain(`\n    ${name}:\n      `);
    expect(kind.fields.filter(({ identity }) => identity)).not.toEqual([]);
    for (const { type, values, minimum, maximum, description } of kind.fields) {
      expect(description).not.toBe('');
      expect(values !== null).toBe(type === 'choice');
      expect([minimum !== null, maximum !== null]).toEqual([type === 'integer', type === 'integer']);
    }
  },
);

test('returns defaults, choices, bounds, triggers, and identity fields', () => {
  expect(field('service-systemd', 'type')).toMatchObject({ type: 'choice', default: 'simple', required: false });
  expect(field('service-systemd', 'reload_on')).toMatchObject({ type: 'ids', required: false });
  expect(field('service-openrc', 'runlevel')).toMatchObject({ type: 'text', default: 'default' });
  expect(field('sysctl', 'ensure')).toMatchObject({ default: 'present', values: ['present', 'absent'] });
  expect(field('group-unix', 'gid')).toMatchObject({ type: 'integer', minimum: 0, maximum: 4_294_967_294 });
  expect(field('user-windows', 'password')).toMatchObject({ sensitive: true });
  expect(getKind('file-unix').exclusive).toContainEqual(['symlink', 'mode']);
  // A `line` resource is identified by its `match` field if it has one.
  const identity = getKind('line-unix').fields.filter((each) => each.identity);
  expect(identity.map(({ name }) => name)).toEqual(['path', 'line', 'match']);
});

test('returns the kinds that the API documentation shows as examples', async () => {
  expect(getKind('sysctl')).toEqual(getKindRoute.example.answer);
  expect((await listKinds(whole)).items).toEqual(expect.arrayContaining([...listKindsRoute.example.answer]));
});

test('refuses an unknown name, and suggests the nearest known name', () => {
  expect(() => getKind('sysctrl')).toThrow(
    expect.objectContaining({ code: 'kind_not_found', message: 'there is no kind "sysctrl": did you mean "sysctl"?' }),
  );
  for (const name of ['constructor', '__proto__', '', 'x'.repeat(10_000)])
    expect(() => getKind(name)).toThrow(expect.objectContaining({ code: 'kind_not_found' }));
});

test('returns the same objects from every call', async () => {
  const [first, second] = await Promise.all([listKinds(whole), listKinds(whole)]);
  expect(second.items[0]).toBe(first.items[0]);
  expect(getKind('sysctl')).toBe(getKind('sysctl'));
});
