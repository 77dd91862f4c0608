import { expect, test } from 'vitest';
import type { Json } from './document.ts';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

/** Keys that every JavaScript object inherits. */
const keys = ['constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'];
const named: Record<string, string> = Object.fromEntries(keys.map((key) => [key, key]));
const inYaml = `{ ${keys.map((key) => `${key}: ${key}`).join(', ')} }`;
const inCel = `{${keys.map((key) => `"${key}": "${key}"`).join(', ')}}`;

const agent = {
  name: 'web-1',
  node_id: 'a',
  attributes: { platform: 'linux', constructor: 'constructor' } as Record<string, string>,
  tags: { constructor: 'constructor' } as unknown as Record<string, string>,
};

const faultsOf = (text: string): string[] => {
  const parsed = parseModule(text);
  return parsed.ok ? [] : parsed.faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
};

/** Returns the `value` of a json-unix resource, or the errors. */
function resolvedValue(value: string, given?: Json): unknown {
  const parsed = parseModule(`name: m
supports: [{ platform: linux }]
parameters:
  p: { type: map, default: ${inYaml}, merge: deep }
resources:
  - resource: { json-unix: { path: /f, pointer: /constructor, value: ${value} } }
`);
  if (!parsed.ok) return parsed.faults.map(({ message }) => message);
  const parameters: Record<string, Record<string, Json>> = given === undefined ? {} : { m: { p: given } };
  const resolved = resolveDesiredSet({ modules: [parsed.module], agent, parameters });
  if (!resolved.ok) return resolved.faults.map(({ message }) => message);
  return JSON.parse(JSON.stringify(resolved.resources[0]?.body.value));
}

test.each([
  ['in a value in place', inYaml],
  ['in a parameter', '"${{ param.p }}"'],
  ['in a literal of an expression', `'\${{ ${inCel} }}'`],
  ['in a merged map', `'\${{ merge(${inCel}, param.p) }}'`],
  ['among the entries of a map', `'\${{ {"constructor": ${inCel}}.constructor }}'`],
])('keeps keys such as constructor %s', (_, value) => {
  expect(resolvedValue(value)).toEqual(named);
});

test('keeps keys such as constructor in all layers of a parameter', () => {
  const given = { constructor: { prototype: { polluted: true } } };
  expect(resolvedValue('"${{ param.p }}"', given)).toEqual({ ...named, ...given });
  expect({}).not.toHaveProperty('polluted');
});

test.each([
  ['has(param.p.constructor) && !has(param.p.isPrototypeOf)', true],
  ['"constructor" in {"constructor": 1} && !("constructor" in {"a": 1})', true],
  ['{"constructor": 1} == {"constructor": 1} && {"constructor": 1} != {"a": 1}', true],
  ['attr.constructor + tag.constructor', 'constructorconstructor'],
  ['keys({"constructor": 1, "a": 2})', ['constructor', 'a']],
])('reads an inherited key only where it is declared: %s', (expression, expected) => {
  expect(resolvedValue(`'\${{ ${expression} }}'`)).toEqual(expected);
});

test('refuses the key __proto__ in modules and in expressions, and reports its position', () => {
  const head = 'name: m\nsupports: [{ platform: linux }]\n';
  const message = 'a map cannot have the key "__proto__": choose another key';
  expect(faultsOf(`${head}parameters: { p: { type: map, default: { __proto__: 1 } } }\n`)).toEqual([
    '3:42 "__proto__" cannot be a key',
  ]);
  expect(
    faultsOf(
      `${head}resources:\n  - resource: { json-unix: { path: /f, pointer: /constructor, value: { __proto__: 1 } } }\n`,
    ),
  ).toEqual(['4:72 "__proto__" cannot be a key']);
  const literal = `'\${{ {"__proto__": 1} }}'`;
  expect(
    faultsOf(
      `${head}resources:\n  - resource: { json-unix: { path: /f, pointer: /constructor, value: ${literal} } }\n`,
    ),
  ).toEqual([`4:71 ${message}`]);
  expect(resolvedValue(`'\${{ {"__" + "proto__": 1} }}'`)).toEqual([`module "m": ${message}`]);
});

test.each(['version("1")', '[1]', 'omit'])('refuses %s as a map key', (key) => {
  expect(resolvedValue(`'\${{ {${key}: 1} }}'`)).toEqual([
    'module "m": a key of a map must be a string, a number, or a boolean: convert it with string(…)',
  ]);
});
