import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../suite/cli.ts';
import { idiomCount, idiomFaults } from './idioms.ts';

const read = (path: string): string => readFileSync(join(root, 'docs', path), 'utf8');
const page = read('coming-from.md');

/** Returns a page with one section. */
const pageWith = (row: string, resource: string): string =>
  `# Page\n\n## Idioms\n\n### Files\n\n| Salt | Puppet | Ansible | Muster | Example |\n|---|---|---|---|---|\n${row}\n
\`\`\`yaml\nname: idiom\nparameters: { level: { type: string, default: info } }\nresources:\n  - ${resource}\n\`\`\`\n\n## Next\n`;
const faultsOf = (muster: string, example: string, resource: string): string[] =>
  idiomFaults(pageWith(`| a | b | c | ${muster} | ${example} |`, resource), read);

const motd =
  '{ id: motd, resource: { file-unix: { path: /etc/motd, content: "${{ param.level }}\\n", acl: [a, b] } } }';

const silent = 'the row names no kind, field, or key that shows the idiom';

test('the modules in docs/coming-from.md use all that the rows of their tables name', () => {
  expect(idiomFaults(page, read)).toEqual([]);
  expect(idiomCount(page)).toBeGreaterThan(125);
});

test('reports the rows of docs/coming-from.md whose resources lose a field', () => {
  const faults = idiomFaults(page.replaceAll(/, (acl: \[.*?\]|hold: true)/g, ''), read);
  expect(faults.map((fault) => fault.replace(/^line \d+: /, ''))).toEqual([
    ...['held', 'held-dnf', 'held-zypper', 'held-pacman'].map((name) => `none of ${name} uses hold: true`),
    ...['readable, inbox', 'inbox, existing'].map((names) => `none of ${names} uses acl`),
  ]);
});

test.each([
  ['`file-unix`: `content`', '`motd`'],
  ['`acl: [a]`', '`motd`'],
  ['`file-unix`: `path: /etc/…`', '`motd`'],
  ['`${{ param.level }}…`', '`motd`'],
  ['`param.level`', '`motd`'],
  ['`file-unix` after `--flag`', '`motd`'],
  ['`parameters`', '`level`'],
  ['not supported: use `script`', ''],
])('accepts %s, shown by %s', (muster, example) => {
  expect(faultsOf(muster, example, motd)).toEqual([]);
});

test.each([
  ['`file-unix`', '', 'the row names no resource in its last column, and does not begin with “not supported”'],
  ['`file-unix`', '`issue`', 'the modules of the section have 0 parts with the name issue, not 1'],
  ['`file-unix`: `mode`', '`motd`', 'none of motd uses mode'],
  ['`file-unix`, `line-unix`', '`motd`', 'none of motd uses line-unix'],
  ['`acl: [c]`', '`motd`', 'none of motd uses acl: [c]'],
  ['`only_if`', '`motd`', 'none of motd uses only_if'],
  ['`param.name`', '`motd`', 'none of motd uses param.name'],
  ['`file-unix`, with `mode` not supported', '`motd`', 'none of motd uses mode'],
  [
    '`file-unix`: other fields are not supported',
    '',
    'the row names no resource in its last column, and does not begin with “not supported”',
  ],
  ['always: nothing else happens', '`motd`', silent],
  ['`--flag`', '`motd`', silent],
  ['`%`', '`motd`', silent],
  ['`/`', '`motd`', silent],
  ['`id`', '`motd`', silent],
  ['`resource`', '`motd`', silent],
  ['`id: motd`', '`motd`', silent],
  ['`${{ … }}`', '`motd`', silent],
  ['`acl`, `id`', '`motd`, `level`', 'level uses nothing that the row names'],
  ['`file-unix`', '`motd`, `level`', 'level uses nothing that the row names'],
])('refuses %s, shown by %s', (muster, example, fault) => {
  expect(faultsOf(muster, example, motd)).toContainEqual(`line 9: ${fault}`);
});

test('counts a field only in a resource of a kind that the row names', () => {
  const variants = '{ id: motd, for_each: { x: { mode: "1" } }, resource: { file-unix: { path: /a } } }';
  expect(faultsOf('`file-unix`: `mode`', '`motd`', variants)).toEqual(['line 9: none of motd uses mode']);
});
