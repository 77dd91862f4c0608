import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  applyAgent,
  applyAssignment,
  cancelOperation,
  checkDrift,
  createAssignment,
  createChannel,
  createSecret,
  getOperation,
  getOperationOutput,
  getRun,
  getSecret,
  getState,
  latestDrift,
  listAudit,
  listNotifications,
  listOperations,
  listSecrets,
  planAgent,
  removeAssignment,
  removeSecret,
  rotateSecretsKey,
  updateSecret,
  uploadModule,
} from '@muster/protocol/http';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { type FarEnd, farEnd } from '../orchestrator/test/far-end.ts';
import { muster } from '../tools/suite/cli.ts';
import { signIn } from './client.ts';
import { eventually } from './eventually.ts';
import { type Orchestrator, type Stage, test } from './harness.ts';

/** Returns the encodings in which a value may appear: raw, JSON, URL, hexadecimal, and base64 at any offset. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const base64 = [0, 1, 2].flatMap((before) =>
    (['base64', 'base64url'] as const).map((alphabet) =>
      // Omits base64 characters that also encode adjacent bytes.
      Buffer.concat([Buffer.alloc(before), bytes])
        .toString(alphabet)
        .slice(before === 0 ? 0 : 4, Math.floor(((before + bytes.length) * 4) / 3)),
    ),
  );
  const json = JSON.stringify(value).slice(1, -1);
  const hex = bytes.toString('hex');
  return [value, json, JSON.stringify(json).slice(1, -1), encodeURIComponent(value), hex, hex.toUpperCase(), ...base64];
}

/** Requests a stream and collects the received text. */
function listen(orchestrator: Orchestrator, path: string, token: string): { text: () => string; close: () => void } {
  let text = '';
  const ca = readFileSync(join(orchestrator.dataDir, 'api.crt'));
  const outgoing = request(`${orchestrator.url}${path}`, { ca, headers: { authorization: `Bearer ${token}` } });
  outgoing.on('response', (answer) => {
    answer.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
  });
  outgoing.on('error', () => {});
  outgoing.end();
  return { text: () => text, close: () => outgoing.destroy() };
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

interface Database {
  /** URL of the PostgreSQL database; null for SQLite in the data directory. */
  url: string | null;
  /** Returns a PostgreSQL database's content by table. */
  dump(): Promise<Map<string, string>>;
}

async function expectSecretsContained(stage: Stage, end: FarEnd, { url, dump }: Database): Promise<void> {
  const flags = ['--log-level', 'debug'];
  const env = url === null ? {} : { MUSTER_DATABASE_URL: url };
  const orchestrator = await stage.orchestrator({ flags, env });
  const agent = await stage.agent(orchestrator, 'web-1', { flags, tags: { role: 'web' } });
  const other = await stage.agent(orchestrator, 'db-1', { flags, tags: { role: 'db' } });
  // A restart adds a program with its own log lines.
  const programs = new Set([orchestrator.program, agent.program, other.program]);
  const token = await signIn(orchestrator.call, orchestrator.operator);
  const streams = [listen(orchestrator, '/api/v1/events', token)];

  const canaries = ['kanarie "one"/+ü&', 'kanarie \\two\\ =?é', 'kanarie-three\nof two-lines'].map(
    (text, i) => `${text}${i}9f3c71`,
  );
  const [one = '', two = '', three = ''] = canaries;
  /** All responses, including errors. */
  const answers: string[] = [];
  const call: Client = async (route, input) => {
    try {
      const answer = await orchestrator.call(route, input);
      answers.push(`${route.id} ${JSON.stringify(answer ?? null)}`);
      return answer;
    } catch (error) {
      if (error instanceof ApiError) answers.push(`${route.id} ${JSON.stringify(error.problem)}`);
      throw error;
    }
  };
  const root = stage.folder('site');
  writeFileSync(join(root, 'plain'), '');
  const file = (id: string, path: string, content: string) => ({
    id,
    resource: { 'file-unix': { path: join(root, path), content } },
  });
  const script = (id: string, apply: string) => ({ id, resource: { script: { program: 'sh', apply } } });
  const upload = (resources: object[]) =>
    call(uploadModule, {
      body: { name: 'site', content: JSON.stringify({ name: 'site', supports: [{ platform: 'linux' }], resources }) },
    });
  const params = { node_id: agent.nodeId };
  const nothing = { params, body: { modules: [] } };

  await call(createChannel, { body: { name: 'hook', channel_type: 'webhook', config: { url: end.url } } });
  for (const [name, value] of Object.entries({ one, two, three }))
    await call(createSecret, { body: { name, value, restriction: { tags: 'role=web' } } });
  await expect(call(createSecret, { body: { name: 'one', value: one } })).rejects.toThrow();
  await expect(call(createSecret, { body: { name: '1', value: one, description: 7 } as never })).rejects.toThrow();

  // Resources that fail, and whose text or output contains a secret.
  await upload([
    file('conf', 'conf', 'user=a\npassword=${{ secrets.one }}\n'),
    file('key', 'key', '${{ secrets.three }}'),
    // The text of these scripts contains no secret, but the files that they print do.
    script('reader', `cd ${root}; cat conf key; head -c 9 conf; sleep 0.3; tail -c +10 conf; cat key >&2; exit 1`),
    script('encoder', `cd ${root}; base64 conf; base64 -w 0 key; printf x | cat - key | base64 -w 20 >&2; exit 1`),
    script(
      'dumper',
      `cd ${root}; for f in conf key; do od -An -v -tx1 $f; od -An -v -tx1 $f | tr -d ' \\n'; done; exit 1`,
    ),
    script(
      'loud',
      "cat <<'END'\n${{ secrets.one }}\n${{ secrets.three }}\nEND\ncat >&2 <<'END'\n${{ secrets.two }}\nEND\nexit 3\n",
    ),
    file('impossible', 'plain/file', '${{ secrets.two }}'),
    {
      id: 'owner',
      resource: { 'file-unix': { path: join(root, 'owned'), content: '${{ secrets.two }}', validate: 'cat %; false' } },
    },
  ]);
  await call(createAssignment, { body: { name: 'web', modules: ['site'], selector: 'role=web' } });
  const plan = await call(planAgent, nothing);
  expect(plan.resources.find(({ id }) => id === 'conf')).toMatchObject({ sensitive: true, diff: null });
  const failed = await call(applyAgent, nothing);
  expect(failed).toMatchObject({ status: 'failed', summary: { changed: 2, failed: 6 } });
  expect(readFileSync(join(root, 'conf'), 'utf8')).toBe(`user=a\npassword=${one}\n`);
  expect(readFileSync(join(root, 'key'), 'utf8')).toBe(three);
  const { output } = await call(getOperationOutput, { params: { ...params, operation_id: failed.operation_id } });
  expect(output['site/loud']).toMatchObject({ stdout: '(sensitive)', stderr: '(sensitive)', exit_code: 3 });
  for (const id of ['reader', 'encoder', 'dumper'])
    expect(output[`site/${id}`]).toMatchObject({ stdout: expect.stringContaining('(sensitive)'), exit_code: 1 });

  // An apply is refused on an agent that the secret's restriction excludes.
  const refused = call(applyAgent, { params: { node_id: other.nodeId }, body: { modules: ['site'] } });
  await expect(refused).rejects.toThrow('is not allowed for this agent');

  // Applies the module, changes a file and secrets, and applies again.
  await upload([
    file('conf', 'conf', 'user=a\npassword=${{ secrets.one }}\n'),
    file('key', 'key', '${{ secrets.three }}'),
  ]);
  expect(await call(applyAgent, nothing)).toMatchObject({ status: 'succeeded' });
  const planned = await call(planAgent, nothing);
  const bound = { params, body: { modules: [], plan_id: planned.operation_id } };
  expect(await call(applyAgent, bound)).toMatchObject({ status: 'succeeded' });
  writeFileSync(join(root, 'conf'), `${one} and more\n`);
  expect(await call(checkDrift, { params })).toMatchObject({
    status: 'drifted',
    resources: [{ id: 'conf', diff: null }],
  });
  await call(updateSecret, { params: { name: 'one' }, body: { value: two } });
  await expect(call(applyAgent, bound)).rejects.toThrow();
  const run = await call(applyAssignment, { params: { name: 'web' } });
  expect(run).toMatchObject({ status: 'succeeded' });
  await call(getRun, { params: { run_id: run.run_id } });
  expect(readFileSync(join(root, 'conf'), 'utf8')).toBe(`user=a\npassword=${two}\n`);
  expect(await call(rotateSecretsKey, {})).toMatchObject({ reencrypted: 4, unreadable: [] });
  // Cancels a script that has printed a secret, after the secret's value has changed.
  const [printed, go] = [join(stage.dir, 'printed'), join(stage.dir, 'go')];
  const holds = `touch ${printed}; until test -e ${go}; do sleep 0.05; done`;
  // The agent receives the cancellation during the sleep at the latest, and skips the resources that follow.
  await upload([script('slow', `cat ${root}/key; echo '\${{ secrets.three }}' >&2; ${holds}; sleep 4`)]);
  const slow = call(applyAgent, nothing);
  const running = await eventually('the script has printed, and the operation is running', async () => {
    const { operations } = await call(listOperations, { query: { status: 'running' } });
    return existsSync(printed) ? (operations[0] ?? null) : null;
  });
  await call(updateSecret, { params: { name: 'three' }, body: { value: one } });
  await call(cancelOperation, { params: { operation_id: running.operation_id } });
  writeFileSync(go, '');
  expect(await slow).toMatchObject({ status: 'cancelled' });
  await call(getOperationOutput, { params: { ...params, operation_id: running.operation_id } });
  await upload([
    file('conf', 'conf', 'user=a\npassword=${{ secrets.one }}\n'),
    file('key', 'key', '${{ secrets.three }}'),
  ]);
  await call(applyAgent, nothing);
  await orchestrator.stop();
  await orchestrator.start();
  programs.add(orchestrator.program);
  await agent.connected(2);
  streams.push(listen(orchestrator, '/api/v1/events', token));
  await call(planAgent, nothing);
  await upload([file('conf', 'conf', 'open\n')]);
  await call(applyAgent, nothing);
  await call(removeAssignment, { params: { name: 'web' } });
  await call(applyAgent, nothing);
  await call(removeSecret, { params: { name: 'three' } });

  for (const { operation_id } of (await call(listOperations, {})).operations)
    await call(getOperation, { params: { operation_id } });
  await call(latestDrift, { params });
  await call(getState, { params });
  await call(listSecrets, {});
  await call(getSecret, { params: { name: 'one' } });
  await call(listNotifications, {});
  const { events } = await call(listAudit, { query: { limit: '500' } });
  expect(new Set(events.map(({ event_type }) => event_type))).toContain('secret.key_rotated');

  for (const path of ['/metrics', '/api/v1/audit/export', '/api/v1/settings', '/api/v1/audit?limit=500'])
    streams.push(listen(orchestrator, path, token));
  await eventually('the webhook has received an event', async () => (end.arrived.length > 0 ? true : null));
  await eventually('all streams have sent data', async () => streams.every(({ text }) => text().length > 100) || null);
  expect(streams[0]?.text()).toContain('state.failed');
  const contents: [string, string][] = [];
  const keep = (directory: string) =>
    contents.push(...filesIn(directory).map((path): [string, string] => [path, readFileSync(path, 'latin1')]));
  // Reads the data directory, including the write-ahead log, while the orchestrator is running and again after it has
  // stopped.
  keep(orchestrator.dataDir);
  if (url === null) expect(contents.some(([path]) => path.endsWith('muster.db-wal'))).toBe(true);
  await orchestrator.stop();
  for (const { close } of streams) close();
  const exported = join(stage.dir, 'all.export');
  await promisify(execFile)(muster, ['export', '--data-dir', orchestrator.dataDir, exported], {
    env: stage.environment(env),
  });
  expect(existsSync(exported)).toBe(true);
  const tables = await dump();
  const logs = [...programs].map((program) => program.lastLines(1_000_000));
  expect(logs).toHaveLength(4);
  for (const log of logs) expect(log.length).toBeGreaterThan(3);
  for (const directory of [orchestrator.dataDir, other.dataDir]) keep(directory);
  contents.push(
    [exported, readFileSync(exported, 'latin1')],
    ...[...tables].map(([table, rows]): [string, string] => [`table ${table}`, rows]),
    ...answers.map((answer): [string, string] => [answer.slice(0, 200), answer]),
    ...streams.map(({ text }, i): [string, string] => [`stream ${i}`, text()]),
    ...end.arrived.map(({ body }): [string, string] => ['a webhook', body]),
    ...logs.map((lines): [string, string] => ['a log', lines.join('\n')]),
  );
  expect(
    contents.some(([location]) => location === (url === null ? `${orchestrator.dataDir}/muster.db` : 'table secrets')),
  ).toBe(true);
  const leaks = canaries.flatMap((value) =>
    [...formsOf(value), ...value.split('\n').filter((line) => line !== value)].flatMap((form) =>
      // Adds the form decoded as Latin-1, because files are read as Latin-1.
      [form, Buffer.from(form).toString('latin1')].flatMap((text) =>
        contents
          .filter(([, content]) => content.includes(text))
          .map(([location]) => `${JSON.stringify(form)} in ${location}`),
      ),
    ),
  );
  expect(leaks).toEqual([]);

  // Only the agent's user can read its files.
  for (const path of filesIn(agent.dataDir)) expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
  expect(statSync(agent.dataDir).mode & 0o077).toBe(0);
}

/** `npm test` selects one database at random, because both store secrets encrypted in the same way. */
const databases = sampled(['SQLite', 'PostgreSQL'] as const, 1);

describe('values of secrets', () => {
  let end: FarEnd;
  let server: PostgresServer | undefined;
  let missing: PostgresMissing | undefined;
  beforeAll(async () => {
    end = await farEnd();
    if (!databases.includes('PostgreSQL')) return;
    try {
      server = await startPostgres();
    } catch (error) {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      missing = error;
    }
  });
  afterAll(async () => {
    await server?.stop();
    await end.close();
  });

  test.for(databases)(
    'the value of a secret is stored only on the machines that may have it, with %s',
    async (database, { stage, skip }) => {
      if (database === 'SQLite')
        return await expectSecretsContained(stage, end, { url: null, dump: async () => new Map() });
      if (!server) return skip(missing?.message);
      const url = await server.createDatabase();
      const { dump } = server;
      return await expectSecretsContained(stage, end, { url, dump: () => dump(url) });
    },
  );
});

test('`muster secrets set` stores a value from a pipe or a file, and an apply writes exactly that value', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  const agent = await stage.agent(orchestrator, 'web-1');
  const key = join(stage.folder('keys'), 'operator.pem');
  writeFileSync(key, orchestrator.operator.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  const ready = await orchestrator.program.event('ready');
  const env = stage.environment({
    MUSTER_URL: orchestrator.url,
    MUSTER_FINGERPRINT: String(ready.fingerprint),
    MUSTER_KEY_FILE: key,
  });
  const secrets = (args: string[], input: string) =>
    new Promise<string>((resolve, reject) => {
      const child = execFile(muster, ['secrets', ...args], { env }, (error, stdout, stderr) =>
        error === null ? resolve(stdout + stderr) : reject(new Error(stderr, { cause: error })),
      );
      child.stdin?.end(input);
    });
  const pem = join(stage.dir, 'site.pem');
  writeFileSync(pem, '-----BEGIN-----\nabc\n-----END-----\n');
  // The CLI removes one trailing newline from standard input, but none from a file.
  const output = [
    await secrets(['set', 'with', '--agent', 'web-1'], 'hunter2 \n'),
    await secrets(['set', 'without'], 'hunter2'),
    await secrets(['set', 'two'], 'hunter2\n\n'),
    await secrets(['set', 'pem', '--file', pem], ''),
    await secrets(['get', 'with'], ''),
    await secrets(['list', '--json'], ''),
    await secrets(['rotate-key'], ''),
  ].join('');
  expect(output).toContain('Re-encrypted 4 values');
  expect(output).not.toMatch(/hunter2|BEGIN/);

  const root = stage.folder('site');
  const names = ['with', 'without', 'two', 'pem'];
  const resources = names.map((name) => ({
    id: name,
    resource: { 'file-unix': { path: join(root, name), content: `\${{ secrets.${name} }}` } },
  }));
  const content = JSON.stringify({ name: 'site', supports: [{ platform: 'linux' }], resources });
  await orchestrator.call(uploadModule, { body: { name: 'site', content } });
  const params = { node_id: agent.nodeId };
  expect(await orchestrator.call(applyAgent, { params, body: { modules: ['site'] } })).toMatchObject({
    status: 'succeeded',
  });
  expect(names.map((name) => readFileSync(join(root, name), 'utf8'))).toEqual([
    'hunter2 ',
    'hunter2',
    'hunter2\n',
    '-----BEGIN-----\nabc\n-----END-----\n',
  ]);
});
