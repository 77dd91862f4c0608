import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { applyAgent, getRun, planAgent, startRun } from '@muster/protocol/http';
import { expect } from 'vitest';
import { describeAnyDatabase } from './any-database.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { eventually } from './eventually.ts';
import { type AgentProcess, test } from './harness.ts';
import { musterAt } from './person.ts';

const mebibyte = 1024 * 1024;
/**
 * Size of the large file: with MUSTER_EVERY_STEP, which `npm run soak -- kill-steps` sets, the size of a disk image.
 */
const size = (process.env.MUSTER_EVERY_STEP === undefined ? 40 : 200) * mebibyte;
/** Maximum growth of an agent's memory while it fetches the file, in bytes. */
const growth = 20 * mebibyte;

/** Writes random bytes. @returns their SHA-256 */
function writeLarge(path: string): string {
  const digest = createHash('sha256');
  const file = openSync(path, 'w');
  for (let at = 0; at < size; at += mebibyte) {
    const piece = randomBytes(mebibyte);
    digest.update(piece);
    writeSync(file, piece);
  }
  closeSync(file);
  return digest.digest('hex');
}

async function hashOf(path: string): Promise<string> {
  const digest = createHash('sha256');
  for await (const piece of createReadStream(path)) digest.update(piece as Buffer);
  return digest.digest('hex');
}

/** Returns a value in `/proc/PID/status`, in bytes. */
const memory = ({ program }: AgentProcess, field: 'VmRSS' | 'VmHWM') =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1]) *
  1024;

describeAnyDatabase('files beside modules', (startWith) => {
  test('three agents fetch a large file, one of them over a link that is cut halfway through', async ({ stage }) => {
    const orchestrator = await startWith(stage);
    const { call } = orchestrator;
    const folder = stage.folder('app');
    mkdirSync(join(folder, 'files'));
    const sha256 = writeLarge(join(folder, 'files/image.bin'));
    const target = join(stage.dir, 'targets');
    const module = `name: app
supports: [{ platform: linux }]
resources:
  - resource: { file-unix: { path: "${target}/\${{ agent.name }}.bin", source: files/image.bin, mode: "0600" } }
`;
    writeFileSync(join(folder, 'module.yml'), module);
    await musterAt(stage, orchestrator).muster('modules', 'upload', folder);

    const proxy = new CuttingProxy(orchestrator.agentPort);
    const port = await proxy.listen();
    const names = ['web-1', 'web-2', 'web-3'];
    const agents: AgentProcess[] = [];
    for (const name of names) {
      const at = `127.0.0.1:${name === 'web-1' ? port : orchestrator.agentPort}`;
      const token = await orchestrator.token(name);
      const connect = [at, '--orchestrator-key', orchestrator.publicKey, '--token', token];
      // The executable limits the young generation to the same size.
      const agent = stage.agentAt(name, connect, { env: { NODE_OPTIONS: '--max-semi-space-size=1' } });
      await agent.start();
      agents.push(agent);
    }
    try {
      const planned = await call(planAgent, { params: { node_id: 'web-2' }, body: { modules: ['app'] } });
      expect(planned.resources).toMatchObject([
        {
          action: 'create',
          diff: expect.stringContaining(`0 bytes before, ${size} bytes after`),
          changes: expect.arrayContaining([{ field: 'content', from: null, to: `sha256:${sha256}` }]),
        },
      ]);
      const before = agents.map((agent) => {
        // Resets the peak of the resident memory, which the agent's startup has raised.
        writeFileSync(`/proc/${agent.program.pid}/clear_refs`, '5');
        return memory(agent, 'VmRSS');
      });
      const answered = proxy.answered;
      proxy.cutAnswersAfter(size / 2);
      const node_ids = agents.map(({ nodeId }) => nodeId);
      const body = { kind: 'apply' as const, node_ids, modules: ['app'] };
      const { run_id } = await call(startRun, { body, respondAsync: true });
      const run = await eventually(
        'the run ends',
        async () => {
          const now = await call(getRun, { params: { run_id } });
          return now.finished_at === null ? null : now;
        },
        180_000,
      );
      expect(run).toMatchObject({ status: 'succeeded' });
      for (const name of names) expect(await hashOf(`${target}/${name}.bin`), name).toBe(sha256);
      // The first half was not sent again: the rest is at most the window and the overhead of frames and TLS.
      const sent = proxy.answered - answered;
      console.log(`sent ${sent} bytes for ${size}, over ${proxy.joined} links`);
      expect(proxy.joined).toBe(2);
      expect(sent).toBeLessThan(size * 1.02 + mebibyte);
      const grown = agents.map((agent, i) => memory(agent, 'VmHWM') - (before[i] ?? 0));
      console.log(`memory grew by ${grown.map((bytes) => (bytes / mebibyte).toFixed(1)).join(', ')} MiB`);
      expect(Math.max(...grown)).toBeLessThan(growth);
      for (const agent of agents) expect(readdirSync(join(agent.dataDir, 'state/contents'))).toEqual([sha256]);
    } finally {
      proxy.end();
    }
  });

  test('the CLI uploads a folder, the agent applies its files and removes files that are no longer in it, and a removal restores everything', async ({
    stage,
  }) => {
    const orchestrator = await startWith(stage);
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const { muster } = musterAt(stage, orchestrator);
    const folder = stage.folder('website');
    const root = join(stage.dir, 'www');
    mkdirSync(join(folder, 'site/css'), { recursive: true });
    writeFileSync(join(folder, 'site/index.html'), '<h1>one</h1>\n');
    writeFileSync(join(folder, 'site/css/a.css'), 'a {}\n');
    writeFileSync(join(folder, 'site/run'), '#!/bin/sh\n', { mode: 0o755 });
    const write = (resources: string) =>
      writeFileSync(
        join(folder, 'module.yml'),
        `name: website\nsupports: [{ platform: linux }]\nresources:\n${resources}`,
      );
    write(`  - id: site\n    resource: { directory-unix: { path: ${root}, source: site } }\n`);
    await muster('modules', 'upload', folder);
    const params = { node_id: 'web-1' };
    const apply = () => call(applyAgent, { params, body: { modules: ['website'] } });
    const planned = await call(planAgent, { params, body: { modules: ['website'] } });
    expect(planned.resources.find(({ identity }) => identity === `${root}/index.html`)?.diff).toContain(
      '+<h1>one</h1>',
    );
    expect(existsSync(root)).toBe(false);
    expect(await apply()).toMatchObject({ status: 'succeeded', summary: { total: 5 } });
    expect(readFileSync(`${root}/css/a.css`, 'utf8')).toBe('a {}\n');
    expect(statSync(`${root}/run`).mode & 0o777).toBe(0o755);
    expect(await apply()).toMatchObject({ status: 'succeeded', summary: { unchanged: 5 } });

    // Uploads another revision, in which a file has changed and another has been removed from the folder.
    writeFileSync(join(folder, 'site/index.html'), '<h1>two</h1>\n');
    rmSync(join(folder, 'site/css'), { recursive: true });
    await muster('modules', 'upload', folder);
    expect(await muster('plan', 'web-1', '-m', 'website')).toMatch(/-<h1>one<\/h1>\s+\+<h1>two<\/h1>/);
    expect(await apply()).toMatchObject({ status: 'succeeded' });
    expect(await muster('modules', 'diff', 'website')).toMatch(/^- site\/css\/a\.css .*\n~ site\/index\.html .*\n$/);
    expect(await muster('modules', 'diff', 'website', '--file', folder)).toBe('');
    expect(readdirSync(root).sort()).toEqual(['index.html', 'run']);
    expect(readFileSync(`${root}/index.html`, 'utf8')).toBe('<h1>two</h1>\n');

    // The download produces an identical folder.
    const copy = join(stage.dir, 'copy');
    await muster('modules', 'download', 'website', '-o', copy);
    expect(readFileSync(join(copy, 'site/index.html'), 'utf8')).toBe('<h1>two</h1>\n');

    // Without the resource, nothing remains on the machine.
    write('  []\n');
    await muster('modules', 'upload', folder);
    expect(await apply()).toMatchObject({ status: 'succeeded' });
    expect(existsSync(root)).toBe(false);
    // The agent removes the content after it has reported the end of the operation.
    await eventually('the agent has removed the content', async () => {
      expect(readdirSync(join(agent.dataDir, 'state/contents'))).toEqual([]);
      return true;
    });
  });
});
