import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { musterHere } from '../../../test/process.ts';

const folders = ['docs/recipes', 'examples/roles'].map((path) =>
  fileURLToPath(new URL(`../../../../${path}`, import.meta.url)),
);
const muster = (...args: string[]) => musterHere(args, {});

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

const module = `name: web
supports: [{ platform: linux }]
parameters: { port: { type: integer, default: 80 } }
resources:
  - id: site
    resource: { file-unix: { path: /etc/site, content: "listen \${{ param.port }} \${{ secrets.key }}" } }
`;
const facts = 'attributes: { platform: linux }\n';

test('modules resolve shows each value with its position, and no secret', async () => {
  const folder = folderOf({ 'web.yml': module, 'facts.yml': facts, 'values.yml': 'port: 81' });
  const file = join(folder, 'web.yml');
  const args = [file, '--facts', join(folder, 'facts.yml'), '--parameters', join(folder, 'values.yml')];
  const shown = await muster('modules', 'resolve', ...args);
  expect(shown.exit, shown.stderr).toBe(0);
  expect(shown.stdout).toContain(
    `content: listen 81 \${{ secrets.key }}  # ${file}:6:56 from param.port (given), secrets.key`,
  );
  expect(shown.stdout).toContain('secrets: key');
  const json = JSON.parse((await muster('modules', 'resolve', ...args, '--json')).stdout);
  expect(json).toMatchObject({ resources: [{ id: 'site' }], secrets: ['key'] });
});

test('modules resolve shows an error at its position in the module', async () => {
  const source = module.replace('param.port', 'attr.rack');
  const folder = folderOf({ 'web.yml': source, 'facts.yml': facts });
  const file = join(folder, 'web.yml');
  const { exit, stderr } = await muster('modules', 'resolve', file, '--facts', join(folder, 'facts.yml'));
  expect(exit).toBe(1);
  expect(stderr).toContain(
    `${file}:6:56 module "web": resource "site": the agent reports no attribute "rack": fix the name`,
  );
  expect(stderr).toContain('> 6 |     resource:');
});

test('modules eval evaluates an expression with the parameters of a module', async () => {
  const folder = folderOf({ 'web.yml': module, 'facts.yml': facts });
  const evaluated = async (...args: string[]) => {
    const result = await muster('modules', 'eval', ...args, '--facts', join(folder, 'facts.yml'));
    return result.exit === 0 ? result.stdout.trim() : `${result.exit} ${result.stderr}`;
  };
  expect(await evaluated('param.port + 1', '--module', join(folder, 'web.yml'))).toBe('81');
  expect(await evaluated('each.name + attr.platform', '--each', '{"name": "x-"}')).toBe('x-linux');
  expect(await evaluated('secrets.key')).toBe('${{ secrets.key }}');
  expect(await evaluated('attr.none')).toContain('1 error: the agent reports no attribute "none"');
  expect(await evaluated('each', '--each', '{')).toContain('2 error: --each is not JSON');
  expect((await muster('modules', 'eval', '1')).stderr).toContain('an agent is required');
});

test.each(folders)('modules test runs the tests of %s', async (folder) => {
  const { exit, stdout, stderr } = await muster('modules', 'test', folder);
  expect(exit, stdout).toBe(0);
  expect(stderr).toMatch(/^\d+ tests passed, 0 failed$/m);
});

test('modules test shows differences, writes JUnit XML, and exits with 1', async () => {
  const folder = folderOf({
    'web/module.yml': module,
    'web/tests/port.yml': `${facts.replace('attributes', 'agent: { attributes').trim()} }
expect: { resources: { site: { file-unix: { content: "listen 82" } } } }
`,
  });
  const junit = join(folder, 'results.xml');
  const failed = await muster('modules', 'test', folder, '--junit', junit);
  expect(failed.exit).toBe(1);
  expect(failed.stdout).toContain('port.yml:2:45 content of "site" differs');
  expect(failed.stdout).toContain('expected: listen 82');
  expect(failed.stdout).toContain('actual:   listen 80 ${{ secrets.key }}');
  expect(readFileSync(junit, 'utf8')).toContain('<testcase name="port.yml"');
  const json = JSON.parse((await muster('modules', 'test', folder, '--json')).stdout);
  expect(json).toMatchObject({ passed: 0, failed: 1 });
});

test('modules test explains what to write if it finds no tests or no module', async () => {
  const folder = folderOf({ 'tests/a.yml': 'agent: {}\nexpect: { absent: [x] }\n', 'empty/x.txt': '' });
  const missing = await muster('modules', 'test', folder);
  expect(missing).toMatchObject({ exit: 1 });
  expect(missing.stderr).toContain('lists no modules');
  const none = await muster('modules', 'test', join(folder, 'empty'));
  expect(none).toMatchObject({ exit: 2 });
  expect(none.stderr).toContain('contains no tests');
  const folderWithModule = folderOf({ 'web.yml': 'name: web\nsupports: [{ platform: linux }]\nresources: []\n' });
  const module = await muster('modules', 'test', join(folderWithModule, 'web.yml'));
  expect(module).toMatchObject({ exit: 2 });
  expect(module.stderr).toContain('web.yml is a module, not a test file');
  expect(module.stderr).toContain(join(folderWithModule, 'tests/web.yml'));
});
