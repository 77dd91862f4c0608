import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillSecrets, parseModule, type ResolvedResource, resolveDesiredSet } from '@muster/protocol/module';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './test/agent.ts';
import { ContentServer } from './test/content-server.ts';
import { operation } from './test/desired.ts';
import { madeArchive } from './test/made-archive.ts';

/** Applies the modules in docs/modules.md that download content, which a test server provides. */

const page = readFileSync(join(import.meta.dirname, '../../../docs/modules.md'), 'utf8');
const facts = { name: 'web-1', node_id: 'a'.repeat(32), attributes: { platform: 'linux' }, tags: {} };

/** Returns the only resource in a documented module. */
function documented(name: string): ResolvedResource {
  const source = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].find(([, text]) => text?.startsWith(`name: ${name}\n`));
  const parsed = parseModule(source?.[1] ?? '');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const resolution = resolveDesiredSet({ modules: [parsed.module], agent: facts });
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  const filled = fillSecrets(resolution.resources, () => undefined);
  const [resource] = filled.ok ? filled.resources : [];
  if (resource === undefined) throw new Error(`the module ${name} has no resource`);
  return resource;
}

let home: string;
let agent: TestAgent;
let server: ContentServer;
beforeEach(async () => {
  home = temporaryDirectory();
  for (const folder of ['data', 'root']) mkdirSync(`${home}/${folder}`, { mode: 0o700 });
  server = await ContentServer.open();
  agent = await startAgent(`${home}/data`, { environment: {} });
});
afterEach(async () => {
  await agent.stop();
  await server.close();
  removeDirectory(home);
});

test.each([
  ['tool', '/usr/local/bin/tool', 'echo tool > tool', 'cp tool "$1"', ''],
  ['app', '/opt/app', 'mkdir -p app/doc; echo app > app/run; echo > app/README.md', undefined, '/current/run'],
])('applies the documented module %s', async (name, path, fill, pack, file) => {
  const resource = documented(name);
  expect(resource.body).toMatchObject({ path });
  const content = server.serve('/content', madeArchive(fill, pack));
  const here = { ...resource, body: { ...resource.body, path: `${home}/root${path}`, ...content } } as ResolvedResource;
  expect((await agent.run(operation('apply', [here]))).results).toMatchObject([{ status: 'changed', message: null }]);
  expect(readFileSync(`${home}/root${path}${file}`, 'utf8')).toBe(`${name}\n`);
  expect((await agent.run(operation('apply', [here]))).results).toMatchObject([{ status: 'unchanged' }]);
});
