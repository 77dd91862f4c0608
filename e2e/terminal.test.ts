import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  addOperator,
  attachTerminal,
  closeTerminal,
  getAgent,
  getStatus,
  getTerminal,
  getTranscript,
  listAudit,
  listTerminals,
  openTerminal,
  removeOperator,
} from '@muster/protocol/http';
import { Client as PostgresClient } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { rowTypes } from '../orchestrator/src/store/postgres/postgres-row-types.ts';
import { contentOf } from '../orchestrator/src/store/transcripts/transcript-rows.ts';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { newOperator } from './client.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { eventually } from './eventually.ts';
import { type AgentProcess, type Orchestrator, Stage, test } from './harness.ts';
import { missing } from './requirements.ts';
import { TerminalScreen } from './terminal-client.ts';

const settings = 'remote_terminal: { enabled: true, shell: /bin/sh }\n';

function offering(stage: Stage): { flags: string[] } {
  const config = join(stage.dir, 'agent.yaml');
  writeFileSync(config, settings);
  return { flags: ['--config', config] };
}

const agentWithTerminals = (stage: Stage, orchestrator: Orchestrator): Promise<AgentProcess> =>
  stage.agent(orchestrator, 'web-1', offering(stage));

interface Opened {
  session_id: string;
  screen: TerminalScreen;
  /** The shell's PID. */
  pid: number;
}

/** Opens a terminal and reads its shell's PID. */
async function opened(orchestrator: Orchestrator, call: Client, size = {}, node_id = 'web-1'): Promise<Opened> {
  const { session_id, ws_url } = await call(openTerminal, { params: { node_id }, query: size });
  const screen = await TerminalScreen.connect(orchestrator, ws_url);
  screen.type('echo "pid=$$."\n');
  const [, pid] = await screen.shows(/pid=(\d+)\./);
  return { session_id, screen, pid: Number(pid) };
}

async function attached(orchestrator: Orchestrator, call: Client, session_id: string, mode: 'control' | 'view') {
  const { ws_url } = await call(attachTerminal, { params: { session_id }, body: { mode } });
  return await TerminalScreen.connect(orchestrator, ws_url);
}

const session = (call: Client, session_id: string) => call(getTerminal, { params: { session_id } });

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

const exited = (pid: number) => eventually(`process ${pid} has ended`, async () => (isAlive(pid) ? null : true));

const codeOf = async (call: Promise<unknown>) =>
  await call.then(
    () => null,
    (error: unknown) => (error instanceof ApiError ? error.problem.code : Promise.reject(error)),
  );

async function transcript(call: Client, session_id: string, format: 'raw' | 'asciicast'): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  const { body } = await call(getTranscript, { params: { session_id }, query: { format } });
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}

const transcriptFile = (orchestrator: Orchestrator, session_id: string) =>
  readFileSync(join(orchestrator.dataDir, 'terminals', `${session_id}.cast`));

async function onPostgres<T>(url: string, work: (client: PostgresClient) => Promise<T>): Promise<T> {
  const client = new PostgresClient({ connectionString: url, types: rowTypes });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Reads a transcript from the database, also while no orchestrator is running. */
const transcriptRows = (url: string, session_id: string): Promise<Buffer> =>
  onPostgres(url, async (client) => {
    const pieces: Buffer[] = [];
    for await (const piece of contentOf(client, session_id, 0, 2 ** 30)) pieces.push(piece);
    return Buffer.concat(pieces);
  });

/** Returns the terminal output in an asciicast transcript. */
function shownIn(cast: Buffer): Buffer {
  const events = cast.toString().trimEnd().split('\n').slice(1);
  return Buffer.concat(
    events
      .map((line) => JSON.parse(line) as [number, string, string])
      .filter(([, kind]) => kind === 'o')
      .map(([, , text]) => Buffer.from(text)),
  );
}

/** Returns the audit event for a closed terminal session. */
async function endOnRecord(call: Client, session_id: string) {
  const { events } = await call(listAudit, { query: { event_type: 'terminal.closed', limit: '100' } });
  return events.find(({ metadata }) => metadata.session_id === session_id);
}

/** Expects that the session was closed because its agent or orchestrator was lost. */
async function expectInterrupted(call: Client, session_id: string): Promise<void> {
  const after = await eventually('the session has ended', async () => {
    const now = await session(call, session_id);
    return now.status === 'active' ? null : now;
  });
  expect(after).toMatchObject({ status: 'interrupted', attached: [] });
  expect(await endOnRecord(call, session_id)).toMatchObject({ metadata: { status: 'interrupted' } });
}

const back = (orchestrator: Orchestrator, node_id = 'web-1') =>
  eventually('the agent is connected', async () => {
    const { connected } = await orchestrator.call(getAgent, { params: { node_id } });
    return connected ? true : null;
  });

/** Shell text that prints numbered lines endlessly. */
const flood = 'i=0; while :; do i=$((i+1)); echo "line $i of a great many"; done\n';

const databases = ['SQLite', 'PostgreSQL'] as const;
/**
 * Databases on which `npm test` runs the tests that do not read stored transcripts: one, selected at random. `npm run soak --
 * kill-steps` uses both.
 */
const anyDatabase = sampled(databases, 1);
let server: PostgresServer | undefined;
let without: PostgresMissing | undefined;
beforeAll(async () => {
  try {
    server = await startPostgres();
  } catch (error) {
    if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
    without = error;
  }
});
afterAll(() => server?.stop());

describe.each(databases)('a terminal, on %s', (database) => {
  const reason = () => (database === 'PostgreSQL' && without ? without.message : null);
  beforeEach(({ skip }) => {
    const why = reason();
    if (why !== null) skip(why);
  });
  /** URL of the most recently created PostgreSQL database. */
  let url = '';
  /** Returns the environment for an orchestrator with its own database. */
  const fresh = async (env: NodeJS.ProcessEnv = {}): Promise<NodeJS.ProcessEnv> => {
    if (database === 'SQLite') return env;
    url = await server!.createDatabase();
    return { ...env, MUSTER_DATABASE_URL: url };
  };
  const storedTranscript = async (orchestrator: Orchestrator, session_id: string): Promise<Buffer> =>
    database === 'SQLite' ? transcriptFile(orchestrator, session_id) : await transcriptRows(url, session_id);

  const testOnAnyDatabase = (name: string, run: () => Promise<void>) => {
    if (anyDatabase.includes(database)) test(name, run);
  };

  describe('with a shared orchestrator and agent', () => {
    let stage: Stage;
    let orchestrator: Orchestrator;
    let agent: AgentProcess;
    beforeAll(async () => {
      if (reason() !== null) return;
      stage = new Stage();
      orchestrator = await stage.orchestrator({ env: await fresh() });
      agent = await agentWithTerminals(stage, orchestrator);
    });
    afterAll(() => stage?.end());
    beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(stage.report())));

    test("a terminal passes input and size, returns its shell's exit code, and stores its output", async () => {
      const { call } = orchestrator;
      const { session_id, screen, pid } = await opened(orchestrator, call, { cols: '100', rows: '30' });
      expect(screen.notices).toEqual([{ type: 'resize', cols: 100, rows: 30 }]);
      screen.type('stty size\n');
      await screen.shows(/30 100\r\n/);
      screen.resize(132, 43);
      screen.type('stty size; echo "Grüße, 日本"\n');
      await screen.shows(/43 132\r\nGrüße, 日本\r\n/);
      expect(screen.notices.at(-1)).toEqual({ type: 'resize', cols: 132, rows: 43 });
      expect(await session(call, session_id)).toMatchObject({
        status: 'active',
        viewers: 1,
        attached: [{ username: 'ada', mode: 'control' }],
      });
      screen.type('exit 7\n');
      expect(await screen.end()).toEqual({ type: 'exit', code: 7, signal: null });
      expect(screen.closed).toBe(1000);
      await exited(pid);

      const cast = await storedTranscript(orchestrator, session_id);
      const sha256 = createHash('sha256').update(cast).digest('hex');
      const after = await session(call, session_id);
      expect(after).toMatchObject({ status: 'closed', transcript_sha256: sha256, transcript_bytes: cast.length });
      expect(await endOnRecord(call, session_id)).toMatchObject({ metadata: { sha256, bytes: cast.length } });
      const [header = ''] = cast.toString().split('\n');
      expect(JSON.parse(header)).toMatchObject({ version: 2, width: 100, muster: { operator: 'ada', agent: 'web-1' } });
      // A client that was connected from the beginning has received exactly the bytes in the transcript.
      expect((await transcript(call, session_id, 'raw')).equals(screen.bytes)).toBe(true);
      expect((await transcript(call, session_id, 'asciicast')).equals(cast)).toBe(true);
    });

    testOnAnyDatabase(
      'a terminal continues without a client, restores the screen for the next one, and has one controller at a time',
      async () => {
        const { call } = orchestrator;
        const { session_id, screen } = await opened(orchestrator, call);
        const go = join(stage.dir, 'go');
        screen.type(`while [ ! -e '${go}' ]; do sleep 0.05; done; echo "while away: $((40+2))"\n`);
        await screen.shows(/while away/);
        screen.cut();
        await eventually('no client is connected', async () => {
          const { attached, status } = await session(call, session_id);
          return attached.length === 0 && status === 'active' ? true : null;
        });
        writeFileSync(go, '');

        const second = await attached(orchestrator, call, session_id, 'control');
        await second.shows(/pid=\d+\.[\s\S]*while away: 42/);
        expect(second.notices).toEqual([{ type: 'resize', cols: 80, rows: 24 }]);
        second.type('echo "again $((1+1))"\n');
        await second.shows(/again 2/);

        // A new controller takes over from the current one.
        const third = await attached(orchestrator, call, session_id, 'control');
        expect(await second.end()).toMatchObject({ type: 'error', code: 'terminal_taken_over' });
        third.type('echo "third $((1+2))"\n');
        await third.shows(/third 3/);
        third.type('exit\n');
        expect(await third.end()).toMatchObject({ type: 'exit', code: 0 });
      },
    );

    testOnAnyDatabase(
      "only admins and a terminal's operator may watch or close it, and viewers may not type",
      async () => {
        const ada = orchestrator.call;
        const person = async (username: string, role: 'admin' | 'operator') => {
          const operator = newOperator();
          const body = { public_key: operator.publicKey, username, role };
          const { operator_id } = await ada(addOperator, { body });
          return { operator_id, call: orchestrator.clientFor(operator) };
        };
        const [bob, carol, dora] = [
          await person('bob', 'operator'),
          await person('carol', 'operator'),
          await person('dora', 'admin'),
        ];
        const { session_id, screen, pid } = await opened(orchestrator, bob.call);
        const params = { session_id };

        for (const refused of [
          () => carol.call(attachTerminal, { params, body: { mode: 'view' } }),
          () => carol.call(attachTerminal, { params, body: { mode: 'control' } }),
          () => carol.call(getTranscript, { params }),
          () => carol.call(closeTerminal, { params }),
        ])
          expect(await codeOf(refused())).toBe('terminal_of_another');

        const [looks, lookedOnBy] = [
          await attached(orchestrator, ada, session_id, 'view'),
          await attached(orchestrator, dora.call, session_id, 'view'),
        ];
        screen.type('echo "seen by $((1+2))"\n');
        for (const each of [screen, looks, lookedOnBy]) await each.shows(/seen by 3/);
        const [listed] = await carol.call(listTerminals, { query: { status: 'active' } });
        expect(listed?.attached.map(({ username, mode }) => `${username} ${mode}`).sort()).toEqual([
          'ada view',
          'bob control',
          'dora view',
        ]);
        looks.type('echo by a viewer\n');
        expect(await looks.end()).toMatchObject({ type: 'error', code: 'forbidden' });

        // A removed operator's clients receive no more output. Other operators' clients continue.
        const removed = async (operator_id: string, screens: TerminalScreen[]) => {
          await ada(removeOperator, { params: { operator_id } });
          for (const each of screens) await each.end();
        };
        await removed(dora.operator_id, [lookedOnBy]);
        screen.type('echo "without $((1+3))"\n');
        await screen.shows(/without 4/);
        expect(lookedOnBy.bytes.toString()).not.toContain('without');
        expect(screen.bytes.toString()).not.toContain('by a viewer');

        await removed(bob.operator_id, [screen]);
        await exited(pid);
        expect(await session(ada, session_id)).toMatchObject({ status: 'closed', attached: [] });

        const other = await opened(orchestrator, carol.call);
        await ada(closeTerminal, { params: { session_id: other.session_id } });
        expect(await other.screen.end()).toMatchObject({ type: 'error', code: 'terminal_closed' });
        await exited(other.pid);
        expect(await endOnRecord(ada, other.session_id)).toMatchObject({ actor: { name: 'ada' } });
      },
    );

    testOnAnyDatabase('no shell or terminal session remains after the agent is killed or stopped', async () => {
      const { call } = orchestrator;
      for (const how of ['killed', 'stopped'] as const) {
        if (how === 'stopped') {
          await agent.start();
          await back(orchestrator);
        }
        const { session_id, screen, pid } = await opened(orchestrator, call);
        // A stopping agent also kills processes that ignore the hang-up.
        if (how === 'stopped') screen.type(`trap '' HUP\n`);
        screen.type('echo "ready $((1+1))"; sleep 1000 & echo "other=$!."; wait\n');
        const [, other] = await screen.shows(/ready 2[\s\S]*other=(\d+)\./);
        // A background process survives when the agent is killed, as under sshd, so the test kills it.
        if (how === 'killed') {
          process.kill(Number(other));
          await agent.kill9();
        } else await agent.stop();
        expect(await screen.end()).toMatchObject({ type: 'error', code: 'terminal_interrupted' });
        await exited(pid);
        if (how === 'stopped') await exited(Number(other));
        await expectInterrupted(call, session_id);
      }
    });

    test('after a broken link, a transcript is a prefix of the output and contains all output that clients received', async ({
      onTestFinished,
    }) => {
      const { call } = orchestrator;
      const proxy = new CuttingProxy(orchestrator.agentPort);
      onTestFinished(() => proxy.end());
      const port = await proxy.listen();
      const token = await orchestrator.token('web-2');
      const connect = [`127.0.0.1:${port}`, '--orchestrator-key', orchestrator.publicKey, '--token', token];
      const behind = stage.agentAt('web-2', connect, offering(stage));
      onTestFinished(() => behind.kill9());
      await behind.start();
      for (const [round, bytes] of (database === 'SQLite' ? [20_000, 77_777] : [50_000]).entries()) {
        await back(orchestrator, 'web-2');
        const { session_id, screen, pid } = await opened(orchestrator, call, {}, 'web-2');
        const copy = join(stage.dir, `shown-${round}`);
        screen.type(`stty -onlcr; echo "begin $((1+1))"; seq 1000000 | tee '${copy}'\n`);
        await screen.shows(/begin 2/);
        proxy.cutAfter(bytes + Math.floor(Math.random() * 5000));
        expect(await screen.end()).toMatchObject({ type: 'error', code: 'terminal_interrupted' });
        await exited(pid);
        await expectInterrupted(call, session_id);
        const stored = shownIn(await storedTranscript(orchestrator, session_id));
        expect(stored.subarray(0, screen.bytes.length).equals(screen.bytes)).toBe(true);
        const [, lines = ''] = stored.toString().split('begin 2\n');
        expect(lines.length).toBeGreaterThan(10_000);
        expect(readFileSync(copy, 'utf8').startsWith(lines)).toBe(true);
      }
    });

    test('a transcript contains all output that clients received before the orchestrator was killed, and the shell exits', async () => {
      const { call } = orchestrator;
      for (const ms of database === 'SQLite' ? [30, 330] : [110]) {
        // Restarts the agent, which then starts with the minimum backoff.
        await agent.stop();
        await agent.start();
        await back(orchestrator);
        const { session_id, screen, pid } = await opened(orchestrator, call);
        screen.type(flood);
        await screen.shows(/line 2 of/);
        await sleep(ms + Math.random() * 50);
        await orchestrator.kill9();
        await screen.end();
        const stored = shownIn(withoutPartOfLine(await storedTranscript(orchestrator, session_id)));
        expect(stored.subarray(0, screen.bytes.length).equals(screen.bytes)).toBe(true);
        await exited(pid);
        await orchestrator.start();
        await expectInterrupted(call, session_id);
        // Regardless of when the orchestrator was killed, the transcript is a valid asciicast, and the audit log
        // contains its digest.
        const cast = await transcript(call, session_id, 'asciicast');
        for (const line of cast.toString().trimEnd().split('\n')) JSON.parse(line);
        const sha256 = createHash('sha256').update(cast).digest('hex');
        expect(await endOnRecord(call, session_id)).toMatchObject({ metadata: { sha256, bytes: cast.length } });
      }
    });
  });

  test('a terminal is closed at the limits for time without a client, idle time, and transcript size', async ({
    stage,
  }) => {
    const config = join(stage.dir, 'orchestrator.yaml');
    const limit = (terminals: Record<string, number>) => writeFileSync(config, JSON.stringify({ terminals }));
    limit({ transcript_limit: 65_536 });
    const orchestrator = await stage.orchestrator({ env: await fresh(), flags: ['--config', config] });
    const { call } = orchestrator;
    await agentWithTerminals(stage, orchestrator);
    const [left, idle, full] = await Promise.all([1, 2, 3].map(() => opened(orchestrator, call)));
    if (!left || !idle || !full) throw new Error('a terminal is missing');
    const expectEnd = async ({ session_id, pid }: Opened, why: RegExp) => {
      await exited(pid);
      expect(await session(call, session_id)).toMatchObject({
        status: 'closed',
        end_reason: expect.stringMatching(why),
      });
    };
    full.screen.type(flood);
    expect(await full.screen.end()).toMatchObject({ type: 'error', code: 'terminal_full' });
    const cast = await storedTranscript(orchestrator, full.session_id);
    expect(cast.length).toBeLessThanOrEqual(65_536);
    expect(full.screen.bytes.equals(shownIn(cast))).toBe(true);
    await expectEnd(full, /65536 bytes/);
    // A reload applies the short limits only now, because opening a terminal on a busy machine takes longer than these
    // limits allow.
    left.screen.cut();
    limit({ transcript_limit: 65_536, reattach_secs: 1 });
    orchestrator.program.kill('SIGHUP');
    await expectEnd(left, /no operator was connected/);
    expect(isAlive(idle.pid)).toBe(true);
    limit({ transcript_limit: 65_536, idle_limit: 1 });
    orchestrator.program.kill('SIGHUP');
    expect(await idle.screen.end()).toMatchObject({ type: 'error', code: 'terminal_idle' });
    await expectEnd(idle, /no input was typed/);
  });

  if (database === 'SQLite')
    test('a terminal is closed with a reason if its transcript cannot be stored or is deleted', async ({
      stage,
      skip,
    }) => {
      const reason = missing('linux', 'root');
      if (reason) skip(reason);
      // Mounts a small file system for transcripts in the orchestrator's mount namespace.
      const small =
        'mkdir -m 700 -p "$0/terminals" && mount -t tmpfs -o size=256k,mode=700 tmpfs "$0/terminals" && exec "$@"';
      const dataDir = join(stage.dir, 'orchestrator-0');
      const within = ['unshare', '--mount', 'sh', '-ec', small, dataDir];
      const orchestrator = await stage.orchestrator({ within, env: await fresh() });
      expect(orchestrator.dataDir).toBe(dataDir);
      const { call } = orchestrator;
      await agentWithTerminals(stage, orchestrator);
      const { session_id, screen, pid } = await opened(orchestrator, call);
      screen.type(flood);
      expect(await screen.end()).toMatchObject({ type: 'error', code: 'terminal_unrecorded' });
      await exited(pid);
      expect(await call(getStatus, {})).toMatchObject({ status: 'ok' });
      expect(await session(call, session_id)).toMatchObject({ status: 'closed' });
      const stored = shownIn(await transcript(call, session_id, 'asciicast'));
      expect(stored.subarray(0, screen.bytes.length).equals(screen.bytes)).toBe(true);
      expect(screen.bytes.length).toBeGreaterThan(50_000);

      // Returns the path of a transcript in that mount namespace.
      const fileOf = (id: string) => join(`/proc/${orchestrator.program.pid}/root`, dataDir, 'terminals', `${id}.cast`);
      rmSync(fileOf(session_id));
      const second = await opened(orchestrator, call);
      rmSync(fileOf(second.session_id));
      second.screen.type('echo to nowhere\n');
      expect(await second.screen.end()).toMatchObject({
        type: 'error',
        code: 'terminal_unrecorded',
        message: 'the terminal cannot be recorded: the transcript file was removed',
      });
      await exited(second.pid);
      expect(await session(call, second.session_id)).toMatchObject({ status: 'closed', transcript_path: null });
    });
  else
    test('a terminal is closed with a reason if its transcript is deleted', async ({ stage }) => {
      const orchestrator = await stage.orchestrator({ env: await fresh() });
      const { call } = orchestrator;
      await agentWithTerminals(stage, orchestrator);
      const { session_id, screen, pid } = await opened(orchestrator, call);
      await onPostgres(url, (client) => client.query('delete from terminal_transcripts'));
      screen.type('echo to nowhere\n');
      expect(await screen.end()).toMatchObject({
        type: 'error',
        code: 'terminal_unrecorded',
        message: 'the terminal cannot be recorded: the rows of the transcript were removed',
      });
      await exited(pid);
      expect(await session(call, session_id)).toMatchObject({ status: 'closed' });
    });
});

/** Returns a transcript without its incomplete last line. */
const withoutPartOfLine = (cast: Buffer): Buffer => cast.subarray(0, cast.lastIndexOf(0x0a) + 1);
