import { describe, expect, test } from 'vitest';
import type { Json } from '../document.ts';
import { parseModule } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';
import { moduleValueFaults } from './value-checks.ts';

const source = (require: string, more = '') => `name: m
supports: [{ platform: linux }]
parameters:
  from: { type: integer, default: 1 }
  to: { type: integer, default: 2 }
  tls: { type: boolean, default: false }
  cert: { type: string }
  hosts: { type: list, merge: append, default: [] }
require: [${require}]
${more}`;
const parsed = (require: string) => {
  const found = parseModule(source(require));
  if (!found.ok) throw new Error(found.faults.map(({ message }) => message).join());
  return found.module;
};
const ordered = '{ that: "param.from < param.to", message: "from must be less than to: swap them" }';

test('refuses a condition that is neither true nor false', () => {
  for (const that of ["'yes'", '1', '[param.from]'])
    expect(() => parsed(`{ that: "${that}", message: m }`)).toThrow(/the condition yields .*, not true or false/);
});

describe('moduleValueFaults', () => {
  const faultsOf = (require: string, given: Record<string, Json>) =>
    moduleValueFaults(parsed(require), given).map(({ message }) => message);

  test('reports a condition that is already false with the given values', () => {
    expect(faultsOf(ordered, { from: 3, to: 2 })).toEqual(['from must be less than to: swap them']);
    expect(faultsOf(ordered, { from: 1, to: 2 })).toEqual([]);
  });

  test.each([
    // `to` has a default, but another assignment may still set it.
    [ordered, { from: 3 }],
    [ordered, { from: 3, to: null }],
    ['{ that: "!param.tls || has(param.cert)", message: m }', { tls: true }],
    ['{ that: "size(param.hosts) > 1", message: m }', { hosts: ['a'] }],
    ['{ that: "param.from > 5 && attr.distro == \'debian\'", message: m }', { from: 1 }],
    ["{ that: \"param['fr' + 'om'] > 5\", message: m }", { from: 1 }],
    ['{ that: "size(param) > 5 || param.from > 5", message: m }', { from: 1 }],
    ['{ that: "size(lookup) > 5 || param.from > 5", message: m }', { from: 1 }],
  ])('defers %s to the resolution if %j is given', (require, given) => {
    expect(faultsOf(require, given as Record<string, Json>)).toEqual([]);
  });

  test('reports only the errors in values if values have errors', () => {
    expect(faultsOf(ordered, { from: 'x', to: 1 })).toEqual([
      'parameter from: must be a whole number, to match its type',
    ]);
  });
});

describe('the resolution', () => {
  const resolved = (require: string, m: Record<string, Json>, attributes = {}) => {
    const agent = { name: 'a', node_id: '1', attributes: { platform: 'linux', ...attributes }, tags: {} };
    const found = resolveDesiredSet({ modules: [parsed(require)], parameters: { m }, agent });
    return found.ok ? [] : found.faults.map(({ line, path, message }) => `${line} ${path} ${message}`);
  };

  test('fails for an agent whose values do not satisfy a condition', () => {
    expect(resolved(ordered, { from: 2 })).toEqual([
      '9 /modules/m/require/0 module "m": from must be less than to: swap them',
    ]);
    expect(resolved(ordered, {})).toEqual([]);
    const onDebian = '{ that: "attr.distro != \'debian\' || param.tls", message: needs tls }';
    expect(resolved(onDebian, {}, { distro: 'debian' })).toEqual(['9 /modules/m/require/0 module "m": needs tls']);
    expect(resolved(onDebian, {}, { distro: 'fedora' })).toEqual([]);
  });

  test('fails if a condition reads a value that is missing', () => {
    expect(resolved('{ that: "size(param.cert) > 0", message: set cert }', {})).toEqual([
      '9 /modules/m/require/0 module "m": set cert',
    ]);
  });

  test('reports an error in the evaluation of a condition', () => {
    expect(resolved('{ that: "1 / (param.from - 1) > 0", message: m }', {})).toEqual([
      expect.stringMatching(/^9 \/modules\/m\/require\/0 module "m": the condition 1 \/ .* cannot be evaluated: /),
    ]);
  });
});

test.each([
  ['{ that: "param.frm > 1", message: m }', '/require/0/that there is no parameter "frm": did you mean "from"?'],
  ['{ that: "param.from", message: m }', null],
  [
    '{ that: "size(\'a\')", message: m }',
    '/require/0/that the condition yields int, not true or false: use a comparison, such as param.x == "y"',
  ],
  ['{ that: "each > 1", message: m }', '/require/0/that "each" exists only in a resource with for_each'],
  [
    '{ that: "secrets.a == \'x\'", message: m }',
    '/require/0/that a secret cannot be the argument of a function or an operator: insert it into text as ${{ secrets.NAME }}',
  ],
  ['{ that: "param.from >", message: m }', expect.stringMatching(/^\/require\/0\/that /)],
  ['{ that: "true" }', '/require/0/message "message" is required'],
  ['{ message: m }', '/require/0/that "that" is required'],
  ['{ that: "", message: m }', '/require/0/that must not be empty'],
  ['{ that: "true", message: "${{ param.from }}" }', '/require/0/message cannot contain an expression'],
])('checks %s during the upload', (require, fault) => {
  const found = parseModule(source(require));
  expect(found.ok ? [] : found.faults.map(({ path, message }) => `${path} ${message}`)).toEqual(
    fault === null ? [] : [fault],
  );
});
