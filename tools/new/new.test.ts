import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../suite/cli.ts';
import { addChange, insert } from './edit.ts';
import { skeletonOf, write } from './new.ts';

const run = promisify(execFile);
const workspaces = ['protocol', 'lib', 'client', 'orchestrator', 'agent', 'cli', 'console', 'e2e'];
const skipped = new Set(['node_modules', 'dist', 'data']);
let copy: string;
let kind: string[];
let noun: string[];
let nounWithoutTable: string[];

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'muster-new-'));
  const others = ['tools', 'docs', 'tsconfig.json', 'biome.json', 'package.json', 'README.md', 'CHANGELOG.md'];
  for (const name of [...workspaces, ...others])
    cpSync(join(root, name), join(copy, name), { recursive: true, filter: (path) => !skipped.has(basename(path)) });
  // The copy uses the third-party packages of this tree but its own workspaces.
  mkdirSync(join(copy, 'node_modules/@muster'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules')).filter((name) => name !== '@muster'))
    symlinkSync(join(root, 'node_modules', name), join(copy, 'node_modules', name));
  for (const name of workspaces) symlinkSync(join(copy, name), join(copy, 'node_modules/@muster', name));
  const about = ['--about', "an entry of the machine's boot menu", '--like', 'grub.entry | | grub, entries'];
  kind = write(copy, skeletonOf(copy, ['kind', 'boot-entry', ...about]) as never);
  const term = ['--term', 'the parts of one gadget'];
  noun = write(copy, skeletonOf(copy, ['noun', 'gadget-kits', '--writable', ...term]) as never);
  const words = ['widgets', '--no-table', '--about', "a machine's widgets", '--example', 'left-cog'];
  nounWithoutTable = write(copy, skeletonOf(copy, ['noun', ...words]) as never);
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Returns the compiler errors in the given files and in all files that they import. */
async function complaints(files: readonly string[], base: string, name: string): Promise<string> {
  const config = join(copy, base, name);
  writeFileSync(
    config,
    JSON.stringify({
      extends: './tsconfig.json',
      files: files.map((file) => join(copy, file)),
      include: ['**/*.d.ts', 'orchestrator/test/databases/shared-postgres.ts', 'tools/suite/bundles-for-tests.ts'],
    }),
  );
  const done = await run(join(root, 'node_modules/.bin/tsc'), ['--checkers', '1', '-p', config], { cwd: copy }).catch(
    (error: { stdout: string }) => error,
  );
  return done.stdout;
}

async function failures(files: readonly string[], environment: 'node' | 'happy-dom', names = '.*'): Promise<string> {
  const config = join(copy, `vitest.${environment}.config.mjs`);
  const setupFiles = environment === 'node' ? [] : [join(copy, 'console/test/setup.ts')];
  // As in vitest.config.ts, the limit only stops tests that hang.
  const test = { include: files, environment, setupFiles, testTimeout: 900_000, hookTimeout: 900_000 };
  writeFileSync(config, `export default ${JSON.stringify({ test })};`);
  const args = [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--config',
    config,
    '--root',
    copy,
    `--testNamePattern=${names}`,
    '--reporter=json',
    `--outputFile=${copy}/report.json`,
  ];
  // The test runner exits with 1, because the generated tests fail.
  await run(process.execPath, args, { cwd: copy, maxBuffer: 1e8 }).catch(() => {});
  const report = JSON.parse(readFileSync(join(copy, 'report.json'), 'utf8')) as {
    testResults: { message: string; assertionResults: { failureMessages: string[] }[] }[];
  };
  expect(report.testResults.map(({ message }) => message).join('')).toBe('');
  return report.testResults
    .flatMap(({ assertionResults }) => assertionResults.flatMap(({ failureMessages }) => failureMessages))
    .join('\n');
}

const isNew = (file: string) => /boot-entry|gadget-kit/.test(file);
const testsOfEveryKind = [
  'protocol/src/module/kinds.test.ts',
  'tools/docs/kinds-page.test.ts',
  'agent/src/resources/registry.test.ts',
];
const inConsole = (file: string) => file.startsWith('console/');

/**
 * In `npm test`, the seed of the run selects a kind or a noun to compile and test. Other runs compile and test both.
 */
const { MUSTER_SAMPLE_SEED: seed, MUSTER_EVERY_STEP: everyStep } = process.env;
const isTried = (what: 'kind' | 'noun') =>
  seed === undefined || everyStep !== undefined || what === (Number(seed) % 2 === 0 ? 'kind' : 'noun');
const describeTried = (what: 'kind' | 'noun', define: () => void) => {
  if (isTried(what)) describe(`a ${what}`, define);
};

describeTried('kind', () => {
  test('writes and registers the files of a new kind, which then compile', async () => {
    const written = kind.filter((file) => !file.endsWith('.md'));
    expect(await complaints([...written, ...testsOfEveryKind], '.', 'tsconfig.new.json')).toBe('');
  });

  test('writes a kind that passes the tests for all kinds', async () => {
    expect(await failures(testsOfEveryKind, 'node')).toBe('');
  });

  test('writes tests for a kind that fail until they are completed', async () => {
    const found = await failures(
      kind.filter((file) => file.endsWith('.test.ts')),
      'node',
    );
    expect(found).toContain('fill in: observe of boot-entry');
    expect(found).toContain('fill in: a case for each field of boot-entry');
    expect(found).toContain('fill in: a body that check refuses');
  });
});

describeTried('noun', () => {
  test('writes and registers files of nouns that compile', async () => {
    const written = [...noun, ...nounWithoutTable].filter((file) => !file.endsWith('.md'));
    const [others, ofConsole] = [written.filter((file) => !inConsole(file)), written.filter(inConsole)];
    expect(await complaints(others, '.', 'tsconfig.new.json')).toBe('');
    expect(await complaints(ofConsole, 'console', 'tsconfig.new.json')).toBe('');
  });

  test('writes tests for a noun that fail until they are completed', async () => {
    const tests = noun.filter((file) => isNew(file) && /\.test\.tsx?$/.test(file));
    expect(tests).toHaveLength(3);
    for (const file of tests) expect(readFileSync(join(copy, file), 'utf8')).toContain("expect.fail('fill in: ");
    expect(
      await failures(
        tests.filter((file) => file.startsWith('cli/')),
        'node',
      ),
    ).toContain('fill in: run muster');
    expect(await failures(tests.filter(inConsole), 'happy-dom')).toContain('fill in: the details of gadget kits');
  });

  test('writes a writable noun that passes the tests for all routes and events without edits', async () => {
    const tables = ['orchestrator/src/http/server/low-disk.test.ts', 'console/src/api/live/outdated-keys.test.ts'];
    expect(await failures(tables, 'node')).toBe('');
    expect(await failures(['cli/src/every-route.test.ts'], 'node', 'GadgetKit')).toBe('');
  });
});

test('writes the description, the example, and the menu position of a noun', () => {
  const text = (file: string) => readFileSync(join(copy, file), 'utf8');
  expect(nounWithoutTable.filter((file) => file.includes('/store/'))).toEqual([]);
  expect(text('tools/checks/nouns.ts')).toContain("widgets: { [queries]: 'has no table' }");
  expect(text('protocol/src/http/definition/tag-descriptions.ts')).toContain(`Widgets: "A machine's widgets.",`);
  expect(text('cli/src/program/nouns.ts')).toContain(`summary: "List and show a machine's widgets",`);
  expect(text('docs/console.md')).toContain("| Widgets | see a machine's widgets |");
  expect(text('docs/glossary.md')).toMatch(/\n\| fleet .*\n\| gadget kit \| the parts of one gadget \|\n\| heartbeat /);
  const menu = text('console/src/app/navigation.ts');
  const keyOf = (label: string) => new RegExp(`label: '${label}', icon: Shapes, key: '([a-z])'`).exec(menu)?.[1];
  const keys = [...menu.matchAll(/ key: '(.)'/g)].map(([, key]) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys).not.toContain('g');
  expect(text('docs/console.md')).toContain(
    `| \`g ${keyOf('Gadget kits')}\` | go to Gadget kits |\n| \`g ${keyOf('Widgets')}\` | go to Widgets |\n`,
  );
});

test('adds a kind, its description, and its counterparts to the pages that list kinds', () => {
  const text = (file: string) => readFileSync(join(copy, file), 'utf8');
  expect(text('protocol/src/module/kinds/boot-entry.ts')).toContain(`"An entry of the machine's boot menu"`);
  expect(text('README.md')).toContain(', `boot-entry`; and `script` for everything else');
  expect(text('docs/coming-from.md')).toContain(
    '| `grub.entry` |  | `grub`, `entries` | `boot-entry` | `boot-entry` |\n',
  );
  expect(text('CHANGELOG.md')).toContain(
    "\n- The kind `boot-entry` manages an entry of the machine's boot menu. Update agents before modules use it.\n",
  );
});

test('adds a change to the newest release, and its section if it is missing', () => {
  const { after } = addChange('Added', '- b');
  const older = '## 0.1\n\n### Added\n- old\n';
  expect(after(`# Log\n\n## Unreleased\n\n### Added\n- a\n\n### Fixed\n- c\n\n${older}`)).toBe(
    `# Log\n\n## Unreleased\n\n### Added\n- a\n- b\n\n### Fixed\n- c\n\n${older}`,
  );
  expect(after(`# Log\n\n## Unreleased\n\n${older}`)).toBe(`# Log\n\n## Unreleased\n\n### Added\n- b\n\n${older}`);
  expect(after('# Log\n\n## Unreleased\n\n### Added\n- a')).toBe('# Log\n\n## Unreleased\n\n### Added\n- a\n- b');
  expect(() => after('# Log\n')).toThrow('CHANGELOG.md has no release');
});

test('refuses an existing name and writes nothing', () => {
  const before = readFileSync(join(copy, 'agent/src/resources/registry.ts'), 'utf8');
  expect(() => write(copy, skeletonOf(copy, ['kind', 'boot-entry']) as never)).toThrow(
    'protocol/src/module/kinds/boot-entry.ts already exists',
  );
  expect(readFileSync(join(copy, 'agent/src/resources/registry.ts'), 'utf8')).toBe(before);
});

test.each([
  [[]],
  [['kind']],
  [['kind', 'Bad_Name']],
  [['noun', 'gadget']],
  [['page', 'gadgets']],
  [['noun', 'gadgets', '--icon', 'x']],
  [['kind', 'x', '--no-table']],
  [['kind', 'x', '--like', 'a | b']],
  [['noun', 'gadgets', '--no-table', '--writable']],
  [['noun', 'gadgets', '--like', 'a | b | c']],
  [['noun', 'gadgets', '--example', "'"]],
])('refuses the arguments %j', (args: string[]) => expect(skeletonOf(root, args)).toBeNull());

test('names the file and the missing anchor in the error', () => {
  expect(() => insert('a.ts', ['];', 'x']).after('no list')).toThrow(
    'a.ts must contain "];" exactly once; correct the anchor',
  );
});
