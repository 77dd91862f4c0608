import { expect, test } from 'vitest';
import type { ModuleDocument } from '../document.ts';
import { parseModule } from '../parse.ts';
import { readModuleTests } from './module-test.ts';
import { runModuleTest } from './run-test.ts';

function moduleOf(source: string): ModuleDocument {
  const parsed = parseModule(source);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.module;
}

const web = moduleOf(`name: web
supports: [{ platform: linux }]
parameters: { port: { type: integer, default: 80 } }
resources:
  - id: site
    resource: { file-unix: { path: /etc/site, content: "listen \${{ param.port }}\\nkey \${{ secrets.key }}\\n", mode: "0644" } }
  - id: old
    when: { distro: fedora }
    resource: { file-unix: { path: /etc/old, ensure: absent } }
  - id: service
    resource: { service-systemd: { name: web, running: true, reload_on: [site] } }
`);

const debian = 'agent: { attributes: { platform: linux, distro: debian } }\n';

function outcomeOf(source: string, modules = [web]): string[] {
  const read = readModuleTests(source);
  if (!read.ok) return read.faults.map(({ line, column, message }) => `invalid ${line}:${column} ${message}`);
  return read.file.tests.flatMap((one) => {
    const { mismatches, faults } = runModuleTest(one, modules);
    return [
      ...mismatches.map(({ line, column, message }) => `${line}:${column} ${message}`),
      ...faults.map(({ message }) => `fault ${message}`),
    ];
  });
}

const expecting = (text: string): string[] => outcomeOf(`${debian}expect:\n  ${text}\n`);

test('accepts a resolution with the expected resources', () => {
  expect(
    outcomeOf(`${debian}parameters: { port: 81 }
expect:
  resources:
    site: { file-unix: { mode: "0644", owner: null, content: "listen 81\\nkey \${{ secrets.key }}\\n" } }
    web:service: { service-systemd: { running: true, reload_on: [site] }, depends_on: [site] }
  absent: [old]
  secrets: [key]
`),
  ).toEqual([]);
});

test('reports each difference at its position in the test', () => {
  expect(expecting('resources: { site: { file-unix: { mode: "0600" } } }')).toEqual(['3:37 mode of "site" differs']);
  expect(expecting('resources: { site: { file-unix: { content: { contains: nothing, lacks: listen } } } }')).toEqual([
    '3:37 content of "site" does not contain "nothing"',
    '3:37 content of "site" contains "listen", which the test expects to be left out',
  ]);
  expect(expecting('resources: { service: { file-unix: {} } }')).toEqual([
    '3:27 "service" is service-systemd web, not file-unix',
  ]);
  expect(expecting('resources: { sit: { file-unix: {} } }')).toEqual([
    '3:16 there is no resource "sit": did you mean "site"?',
  ]);
  expect(expecting('resources: { site: { file-unix: { owner: root, path: null } } }')).toEqual([
    '3:37 "site" has no owner',
    '3:50 "site" has path, which the test expects to be left out',
  ]);
  expect(expecting('resources: { site: { depends_on: [service] } }')).toEqual([
    '3:24 "site" does not depend on "service"; it depends on nothing',
  ]);
  expect(expecting('absent: [site]')).toEqual(['3:12 "site" is not absent: it is file-unix /etc/site']);
  expect(expecting('secrets: [other]')).toEqual(['3:3 other secrets are used']);
});

test('names the ids of a loop if an expected id is not one of them', () => {
  const each = moduleOf(
    `name: m\nsupports: [{ platform: linux }]\nresources:\n  - { id: a, resource: { timezone: { name: Etc/UTC } } }\n  - { id: f, for_each: [x.y, z], resource: { file-unix: { path: "/\${{ each }}", content: a } } }\n`,
  );
  expect(outcomeOf(`${debian}expect: { resources: { "f[x.y]": { file-unix: {} } } }\n`, [each])).toEqual([
    '2:24 there is no resource "f[x.y]"; the ids of its loop are f[0] and f[1]',
  ]);
});

test('compares the resolution errors with the expected errors', () => {
  const given = `${debian}parameters: { port: http }\nexpect:\n  faults:`;
  expect(outcomeOf(`${given} [whole number]`)).toEqual([]);
  expect(outcomeOf(`${given} [too large]`)).toEqual([
    '4:12 no error contains "too large"',
    expect.stringContaining('must be a whole number'),
  ]);
  expect(expecting('faults: [whole number]')).toEqual(['3:3 the modules resolve without an error']);
  expect(outcomeOf('agent: { attributes: { platform: macos } }\nexpect: { absent: [x] }')).toEqual([
    expect.stringContaining('matches no supports clause'),
  ]);
});

test('refuses an invalid test file with the line, the column, and a correction', () => {
  expect(outcomeOf('agent: { attribute: {} }\nexpect: { absent: [x] }')).toEqual([
    'invalid 1:10 unknown field "attribute": did you mean "attributes"?',
  ]);
  expect(expecting('resource: {}')).toEqual(['invalid 3:3 unknown field "resource": did you mean "resources"?']);
  expect(outcomeOf(`${debian}`)).toEqual(['invalid 1:1 needs expect, or tests with a list of tests']);
  expect(outcomeOf(`${debian}expect: {}`)).toEqual([
    'invalid 2:9 expects nothing: write resources, absent, faults, or secrets',
  ]);
  expect(expecting('resources: { site: { file-unix: { mod: "0644" } } }')).toEqual([
    'invalid 3:42 file-unix has no field "mod": did you mean "mode"?',
  ]);
  expect(expecting('resources: { site: { file-unx: {} } }')).toEqual([
    'invalid 3:24 unknown kind "file-unx": did you mean "file-unix"?',
  ]);
  expect(outcomeOf('agent: { attributes: { addresses: [a] } }\nexpect: { absent: [x] }')).toEqual([
    'invalid 1:35 must be text, a number, true or false, or a mapping of them; write a list as text, "a,b"',
  ]);
  expect(outcomeOf(`${debian}tests: []\n`)).toEqual([
    'invalid 1:8 cannot be combined with tests: move it into each of them',
  ]);
});
