import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyAgent, getState, listAgents, listAudit, listModules, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { PostgresMissing, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { muster } from '../tools/suite/cli.ts';
import { type Stage, test } from './harness.ts';
import { siteModule } from './site.ts';

interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

const run = (stage: Stage, ...args: string[]): Promise<Ran> =>
  new Promise((resolve) => {
    execFile(muster, args, { env: stage.environment(), maxBuffer: 1e9 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });

const tablesOf = ({ stdout }: Ran) =>
  Object.fromEntries(
    (JSON.parse(stdout) as { tables: { table: string; rows: number; sha256: string }[] }).tables.map(
      ({ table, ...rest }) => [table, rest],
    ),
  );

describe('export and import of a database', () => {
  test('an orchestrator keeps all data after a move to PostgreSQL, and the data can be moved back', async ({
    stage,
    skip,
  }) => {
    const server = await startPostgres().catch((error: unknown) => {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      skip(error.message);
      throw error;
    });
    try {
      const orchestrator = await stage.orchestrator();
      const { call, dataDir } = orchestrator;
      const agent = await stage.agent(orchestrator, 'web-1', { tags: { role: 'web' } });
      const params = { node_id: agent.nodeId };
      await call(uploadModule, {
        body: { name: 'site', content: siteModule({ name: 'site', root: join(stage.dir, 'site') }) },
      });
      await call(applyAgent, { params, body: { modules: ['site'] } });
      const state = await call(getState, { params });
      const file = join(stage.dir, 'muster.export');
      const from = ['--data-dir', dataDir];

      // The commands refuse a database that a running orchestrator is using.
      for (const args of [
        ['export', ...from, file],
        ['migrate', ...from],
        ['import', ...from, file],
      ]) {
        const refused = await run(stage, ...args);
        expect(refused).toMatchObject({ code: 1, stdout: '' });
        expect(refused.stderr).toMatch(/in use by another/);
      }
      await agent.stop();
      await orchestrator.stop();

      const written = await run(stage, 'export', ...from, '--json', file);
      expect(written, written.stderr).toMatchObject({ code: 0 });
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readdirSync(stage.dir)).not.toContain('muster.export.partial');
      expect(tablesOf(written).applied_resources?.rows).toBe(state.applied.length);

      const url = await server.createDatabase();
      const urlFile = join(stage.dir, 'url');
      writeFileSync(urlFile, url, { mode: 0o600 });
      const into = ['--database-url-file', urlFile];
      const cut = join(stage.dir, 'cut.export');
      writeFileSync(cut, readFileSync(file).subarray(0, -500));
      const refused = await run(stage, 'import', ...into, cut);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toMatch(/truncated/);
      const read = await run(stage, 'import', ...into, '--json', file);
      expect(read, read.stderr).toMatchObject({ code: 0 });
      expect(tablesOf(read)).toEqual(tablesOf(written));
      expect(read.stdout + read.stderr).not.toContain(new URL(url).password);
      expect((await run(stage, 'import', ...into, file)).stderr).toMatch(/has tables already/);
      expect((await run(stage, 'migrate', ...into)).stderr).toMatch(
        /already at schema version \d+; nothing was changed/,
      );

      // The orchestrator has all data in the new database, and its agent reconnects.
      orchestrator.set({ MUSTER_DATABASE_URL_FILE: urlFile });
      await orchestrator.start();
      await agent.start();
      expect(await call(listAgents, {})).toMatchObject([{ name: 'web-1', tags: { role: 'web' }, connected: true }]);
      expect(await call(listModules, {})).toHaveLength(1);
      expect(await call(getState, { params })).toEqual(state);
      expect((await call(applyAgent, { params, body: { modules: ['site'] } })).summary).toMatchObject({
        unchanged: 26,
      });
      const events = (await call(listAudit, { query: { limit: '500' } })).events.length;
      // A second orchestrator and an export refuse the database, because the first orchestrator is using it.
      const second = stage.run('second', [
        'orchestrator',
        ...['--data-dir', stage.folder('second')],
        ...into,
        '--api-port=0',
        '--agent-port=0',
      ]);
      expect(await second.ended).toMatchObject({ code: 1 });
      expect(second.lastLines(5).join('\n')).toMatch(/in use by another Muster process/);
      expect((await run(stage, 'export', ...into, '-')).stderr).toMatch(/in use by another/);
      await agent.stop();
      await orchestrator.stop();

      // Moves the data back through a pipe.
      const back = stage.folder('back');
      const piped = spawnSync(
        'bash',
        [
          '-c',
          `set -o pipefail; '${muster}' export --database-url-file '${urlFile}' - | '${muster}' import --data-dir '${back}' --json -`,
        ],
        { encoding: 'utf8', env: stage.environment() },
      );
      expect(piped, piped.stderr).toMatchObject({ status: 0 });
      const exported = JSON.parse(piped.stdout) as { tables: { table: string; rows: number }[] };
      expect(exported.tables.find(({ table }) => table === 'audit_events')?.rows).toBeGreaterThanOrEqual(events);
    } finally {
      await server.stop();
    }
  });

  test('export and migrate report a missing database, and all commands report invalid arguments', async ({ stage }) => {
    const empty = stage.folder('empty');
    const nothing = await run(stage, 'export', '--data-dir', empty, '-');
    expect(nothing).toMatchObject({ code: 1, stdout: '' });
    expect(nothing.stderr).toMatch(/no database found at/);
    expect((await run(stage, 'migrate', '--data-dir', join(empty, 'none'))).stderr).toMatch(
      /the data directory .* does not exist/,
    );
    expect(await run(stage, 'import')).toMatchObject({ code: 2 });
    expect(await run(stage, 'migrate', 'now')).toMatchObject({ code: 2 });
    expect((await run(stage, 'export', '--dta-dir', 'x', '-')).stderr).toMatch(/Did you mean --data-dir/);
    const help = await run(stage, 'import', '--help');
    expect(help).toMatchObject({ code: 0 });
    expect(help.stdout).toMatch(/^Usage: muster import/);
  });
});
