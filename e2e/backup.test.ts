import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyAgent,
  checkDrift,
  createSecret,
  getAgent,
  getOperation,
  latestDrift,
  listAgents,
  listAudit,
  listModules,
  listNotifications,
  putTag,
  uploadModule,
  verifyAudit,
} from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { eventually } from './eventually.ts';
import { Orchestrator, type Stage, test } from './harness.ts';
import { someTests } from './some-tests.ts';

/** Backs up an orchestrator under load, kills it, and restores the backup to another orchestrator. */

const keysWritten = 5;

interface DatabaseSetting {
  env: NodeJS.ProcessEnv;
}

/** Environment and options for encrypting and decrypting a backup. */
interface Encryption {
  env: NodeJS.ProcessEnv;
  encrypt: readonly string[];
  decrypt: readonly string[];
}

async function run(stage: Stage, name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const program = stage.run(name, args, env);
  const { code } = await program.ended;
  expect(code, program.lastLines(20).join('\n')).toBe(0);
}

async function backUpAndRestore(
  stage: Stage,
  from: DatabaseSetting,
  to: DatabaseSetting,
  encryption: Encryption,
): Promise<void> {
  const orchestrator = await stage.orchestrator({ env: from.env });
  const { call } = orchestrator;
  const agent = await stage.agent(orchestrator, 'web-1');
  const params = { node_id: agent.nodeId };
  const [motd, proof, done] = ['motd', 'proof', 'done'].map((name) => join(stage.dir, 'etc', name)) as [
    string,
    string,
    string,
  ];
  const moduleOf = (name: string, resource: object) => ({
    name,
    content: JSON.stringify({ name, supports: [{ platform: 'linux' }], resources: [{ id: name, resource }] }),
  });
  const file = (path: string, content: string) => ({ 'file-unix': { path, content, mode: '0600' } });
  await call(createSecret, { body: { name: 'db', value: 'hunter2-hunter2' } });
  await call(uploadModule, { body: moduleOf('m', file(motd, 'welcome\n')) });
  await call(applyAgent, { params, body: { modules: ['m'] } });
  const slow = {
    program: 'sh',
    manages: 'a-line',
    apply: `echo ran >> '${proof}'; while ! test -e '${done}'; do sleep 0.05; done`,
  };
  await call(uploadModule, { body: moduleOf('slow', { script: slow }) });
  const { operation_id } = await call(applyAgent, { params, body: { modules: ['slow'] }, respondAsync: true });
  await eventually('the script is running', async () => (existsSync(proof) ? true : null));
  const unused = await orchestrator.token('web-2');

  // Keys are written in sequence, so a backup always contains consecutive values.
  let answered = 0;
  let writing = true;
  const writer = (async () => {
    while (writing) {
      const n = answered + 1;
      await call(putTag, { params: { ...params, key: `w${n % keysWritten}` }, body: { value: String(n) } });
      answered = n;
    }
  })();
  await eventually('writes are under way', async () => (answered > 2 * keysWritten ? true : null));
  const before = answered;
  const backup = join(stage.dir, 'muster.backup');
  const making = ['backup', '--data-dir', orchestrator.dataDir, ...encryption.encrypt, backup];
  await run(stage, 'backup', making, { ...from.env, ...encryption.env });
  const after = answered;
  expect(after).toBeGreaterThan(before);
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  expect(readFileSync(backup).includes('hunter2')).toBe(false);

  // Makes changes after the backup, then kills the orchestrator.
  await call(uploadModule, { body: moduleOf('later', file(motd, 'later\n')) });
  writing = false;
  await writer;
  await orchestrator.kill9();
  writeFileSync(done, '');

  const dataDir = stage.folder('restored');
  await run(stage, 'restore', ['restore', '--data-dir', dataDir, ...encryption.decrypt, backup], {
    ...to.env,
    ...encryption.env,
  });
  expect(readdirSync(dataDir).filter((name) => name.startsWith('.'))).toEqual([]);
  const restored = new Orchestrator(stage, dataDir, { env: to.env });
  restored.apiPort = orchestrator.apiPort;
  restored.agentPort = orchestrator.agentPort;
  await restored.start();
  expect(restored.publicKey).toBe(orchestrator.publicKey);

  // The restore invalidates all sign-in sessions.
  await expect(call(listModules, {})).rejects.toMatchObject({ problem: { code: 'unauthenticated' } });
  const again = restored.clientFor(orchestrator.operator);
  expect((await again(listModules, {})).map(({ name }) => name).sort()).toEqual(['m', 'slow']);
  const { tags } = await again(getAgent, { params });
  const numbers = Array.from({ length: keysWritten }, (_, key) => Number(tags[`w${key}`])).sort(
    (one, other) => one - other,
  );
  const newest = numbers.at(-1) as number;
  expect(numbers).toEqual(Array.from({ length: keysWritten }, (_, index) => newest - keysWritten + 1 + index));
  expect(newest).toBeGreaterThanOrEqual(before);
  expect(newest).toBeLessThanOrEqual(after + 1);
  expect(await again(verifyAudit, {})).toMatchObject({ ok: true });
  expect((await again(listAudit, { query: { limit: '500' } })).events.map(({ event_type }) => event_type)).toContain(
    'system.restored',
  );

  // The running operation is reported as interrupted.
  const interrupted = await again(getOperation, { params: { operation_id } });
  expect(interrupted).toMatchObject({ status: 'interrupted', error: expect.stringContaining('restored') });

  // The agent reconnects and is still approved. Unused enrollment tokens from the backup are invalid.
  await agent.connected(2);
  const [record] = await again(listAgents, {});
  expect(record).toMatchObject({ name: 'web-1', status: 'approved', connected: true });
  // Runs on a single database, because the result does not depend on the database.
  if (from.env.MUSTER_DATABASE_URL === undefined) {
    const stranger = stage.agentAt('web-2', [
      `127.0.0.1:${restored.agentPort}`,
      '--orchestrator-key',
      restored.publicKey,
      '--token',
      unused,
    ]);
    stranger.launch();
    await eventually('the agent with the old token is refused or pending', async () => {
      const { events } = await again(listAudit, { query: { category: 'agent' } });
      return events.some(({ event_type }) => /refused|pending/.test(event_type)) ? true : null;
    });
    expect((await again(listAgents, { query: { status: 'approved' } })).map(({ name }) => name)).toEqual(['web-1']);
    await stranger.stop();
  }

  // The restored orchestrator resolves secrets, detects drift, and does not run the script a second time.
  await again(uploadModule, {
    body: moduleOf('secretive', file(join(stage.dir, 'etc/secret'), '${{ secrets.db }}\n')),
  });
  expect(await again(applyAgent, { params, body: { modules: ['m', 'secretive'] } })).toMatchObject({
    status: 'succeeded',
  });
  expect(readFileSync(join(stage.dir, 'etc/secret'), 'utf8')).toBe('hunter2-hunter2\n');
  writeFileSync(motd, 'by hand\n');
  await again(checkDrift, { params });
  expect(await again(latestDrift, { params })).toMatchObject({ status: 'drifted' });
  expect(readFileSync(proof, 'utf8')).toBe('ran\n');
  // The restore is an event in the audit chain and causes a notification.
  await eventually('operators are notified', async () => {
    const { notifications } = await again(listNotifications, {});
    return notifications.some(({ event_type }) => event_type === 'system.restored') ? true : null;
  });
}

describe('backup and restore', () => {
  let server: PostgresServer | undefined;
  let missing: PostgresMissing | undefined;
  beforeAll(async () => {
    try {
      server = await startPostgres();
    } catch (error) {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      missing = error;
    }
  });
  beforeEach(({ skip }) => {
    if (missing) skip(missing.message);
  });
  afterAll(() => server?.stop());
  const postgres = async (): Promise<DatabaseSetting> => ({
    env: { MUSTER_DATABASE_URL: await server!.createDatabase() },
  });

  const testSome = someTests(test, 2, 'backup and restore');

  testSome('a backup of SQLite taken under load can be restored to PostgreSQL', async ({ stage }) => {
    const env = { MUSTER_BACKUP_PASSPHRASE: 'correct horse battery staple' };
    await backUpAndRestore(stage, { env: {} }, await postgres(), { env, encrypt: [], decrypt: [] });
  });

  testSome('a backup of PostgreSQL taken under load can be restored to SQLite', async ({ stage }) => {
    const identity = join(stage.dir, 'identity');
    // Writes an identity file as `age-keygen` does.
    const key = 'AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX';
    writeFileSync(identity, `# created: today\n${key}\n`, { mode: 0o600 });
    const encrypt = ['--recipient', 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'];
    await backUpAndRestore(
      stage,
      await postgres(),
      { env: {} },
      { env: {}, encrypt, decrypt: ['--identity', identity] },
    );
  });
});
