import { expect, test } from 'vitest';
import { conflictsBetween } from './conflicts-between.ts';
import { parseModule } from './parse.ts';

const moduleOf = (name: string, resources: string, supports = '{ platform: linux }') => {
  const parsed = parseModule(`name: ${name}\nsupports: [${supports}]\nresources:\n${resources}`);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join());
  return parsed.module;
};
const file = (fields: string, more = '') => `  - resource: { file-unix: { path: /etc/motd, ${fields} } }\n${more}`;
const found = (...modules: ReturnType<typeof moduleOf>[]) =>
  conflictsBetween(modules).map(({ module, message, uncertain }) => `${module} ${uncertain} ${message}`);

test('finds a file that two modules declare differently, but not one that they declare identically', () => {
  const one = moduleOf('one', file('content: a'));
  expect(found(one, moduleOf('two', file('content: b')))).toEqual([
    '1 false file-unix "/etc/motd" is declared differently in module "one" (resource 1): the values of `content` differ; keep one of them, or make them agree',
  ]);
  expect(found(one, moduleOf('two', file('content: a')))).toEqual([]);
  expect(conflictsBetween([one, moduleOf('two', file('content: b'))])[0]?.path).toEqual([
    'resources',
    0,
    'resource',
    'file-unix',
  ]);
});

test('ignores modules and resources that no agent has together', () => {
  const linux = moduleOf('one', file('content: a'));
  expect(found(linux, moduleOf('two', file('content: b'), '{ platform: macos }'))).toEqual([]);
  const only = (distro: string) => `    when: { distro: ${distro} }\n`;
  expect(
    found(moduleOf('one', file('content: a', only('debian'))), moduleOf('two', file('content: b', only('fedora')))),
  ).toEqual([]);
  expect(
    found(moduleOf('one', file('content: a', only('debian'))), moduleOf('two', file('content: b', only('debian')))),
  ).toHaveLength(1);
});

test('reports a difference that depends on expressions as uncertain', () => {
  expect(found(moduleOf('one', file('content: a')), moduleOf('two', file('content: "${{ attr.hostname }}"')))).toEqual([
    expect.stringMatching(/^1 true /),
  ]);
});

test('finds a part of a file that another module declares as a whole, in any order', () => {
  const line = moduleOf('line', '  - resource: { line-unix: { path: /etc/motd, line: hello } }\n');
  const whole = moduleOf('whole', file('content: a'));
  for (const modules of [
    [line, whole],
    [whole, line],
  ])
    expect(found(...modules)).toEqual([
      expect.stringMatching(/line-unix "\/etc\/motd" is a part of a file, and module "whole" \(resource 1\) declares/),
    ]);
});
