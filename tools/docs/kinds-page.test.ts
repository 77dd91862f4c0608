import { executableKinds, kinds, resourceTypes } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { kindsPage } from './kinds-page.ts';

const page = kindsPage();
const sections = new Map(page.split(/^## /m).map((section) => [section.split('\n')[0] as string, section]));

test.each(resourceTypes)('documents the fields, an example, and the agent support of %s', (type) => {
  const section = sections.get(type) ?? '';
  const { required, optional, triggers } = kinds[type];
  for (const name of Object.keys(required)) expect(section).toContain(`| **\`${name}\`** |`);
  for (const name of [...Object.keys(optional), ...triggers]) expect(section).toContain(`| \`${name}\` |`);
  // Every row has a type and a description.
  for (const row of section.matchAll(/^\| \*?\*?`.*$/gm)) expect(row[0]).toMatch(/\| \S.* \| \S.* \|$/);
  expect(section).toContain(`    ${type}:\n`);
  expect(section.includes('Not supported')).toBe(!executableKinds.has(type));
});

test('documents the choices and ranges in the schema', () => {
  expect(sections.get('file-unix')).toContain('| `present`, `absent` |');
  expect(sections.get('group-unix')).toContain('whole number, 0 to 4294967294');
  expect(sections.get('user-windows')).toMatch(/`password`.*never shown/);
});
