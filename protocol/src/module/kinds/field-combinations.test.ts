import { describe, expect, test } from 'vitest';
import type { Json } from '../document.ts';
import { parseModule } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';

const agent = { name: 'web-1', node_id: '0'.repeat(32), attributes: { platform: 'linux' }, tags: {} };

/** Returns the upload errors; if there are none, the resolution errors; otherwise, the body. */
function outcome(resource: string, parameters: Record<string, Json>): unknown {
  const declared = Object.entries(parameters).map(
    ([name, value]) => `${name}: { type: ${Array.isArray(value) ? 'list' : typeof value} }`,
  );
  const parsed = parseModule(
    `name: m\nsupports: [{}]\nparameters: { ${declared} }\nresources: [{ id: r, resource: { ${resource} } }]\n`,
  );
  if (!parsed.ok) return parsed.faults.map(({ message }) => message);
  const resolved = resolveDesiredSet({ modules: [parsed.module], agent, parameters: { m: parameters } });
  return resolved.ok ? resolved.resources[0]?.body : resolved.faults.map(({ message }) => message);
}

describe('exclusive fields', () => {
  const user =
    'user-unix: { name: ann, additional_groups: "${{ param.all ? param.groups : omit }}", groups_append: "${{ param.append ? param.groups : omit }}" }';
  const groups = ['staff'];

  test('accepts fields that exclude each other if an expression omits one of them', () => {
    expect(outcome(user, { groups, all: true, append: false })).toEqual({ name: 'ann', additional_groups: groups });
    expect(outcome(user, { groups, all: false, append: true })).toEqual({ name: 'ann', groups_append: groups });
    expect(outcome(user, { groups, all: false, append: false })).toEqual({ name: 'ann' });
  });

  test('refuses fields that exclude each other for an agent whose values set both', () => {
    expect(outcome(user, { groups, all: true, append: true })).toEqual([
      expect.stringContaining('cannot be combined with additional_groups; keep only one'),
    ]);
  });
});

test.each([
  ["mount-unix: { path: /a, device: /dev/b, type: '${{ param.p }}' }", 'requires type, unless it has ensure: absent'],
  ["archive: { path: /a, source: '${{ param.p }}' }", 'one of url, source is required: add it'],
  ["archive: { path: /a, url: https://a/b.tar, sha256: '${{ param.p }}' }", 'requires sha256: add it'],
])('refuses to omit a required field from %s', (resource, message) => {
  expect(outcome(resource.replace('param.p', 'param.p == "-" ? omit : param.p'), { p: '-' })).toEqual([
    expect.stringContaining(message),
  ]);
});

test('requires the fields of a present resource after `ensure` is evaluated', () => {
  const grant = (field: string) => `toml-unix: { path: /a, pointer: /b, ensure: "\${{ param.ensure }}"${field} }`;
  expect(outcome(grant(''), { ensure: 'absent' })).toEqual({ path: '/a', pointer: '/b', ensure: 'absent' });
  const archive = 'archive: { path: /a, ensure: "${{ param.ensure }}" }';
  expect(outcome(archive, { ensure: 'absent' })).toEqual({ path: '/a', ensure: 'absent' });
  expect(outcome(archive, { ensure: 'present' })).toEqual([expect.stringContaining('one of url, source is required')]);
  expect(outcome(grant(', value: 1'), { ensure: 'present' })).toEqual({ path: '/a', pointer: '/b', value: 1 });
  expect(outcome(grant(''), { ensure: 'present' })).toEqual([
    expect.stringContaining('requires value, unless it has ensure: absent'),
  ]);
});
