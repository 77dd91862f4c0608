import { writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { type ApiError, createClient } from '@muster/protocol/client';
import {
  applyAgent,
  attachTerminal,
  getAgent,
  getHealth,
  getOperationOutput,
  getStatus,
  getTerminal,
  getTranscript,
  type OperationOutput,
  openTerminal,
  uploadModule,
} from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { NatsServer, natsMissing } from '../orchestrator/test/nats/nats-server.ts';
import { signIn } from './client.ts';
import { eventually } from './eventually.ts';
import { type Orchestrator, type Stage, test } from './harness.ts';
import { followEvents, startReplicas, transportOf } from './replica-set.ts';
import { TerminalScreen } from './terminal-client.ts';

const module = JSON.stringify({
  name: 'once',
  supports: [{ platform: 'linux' }],
  resources: [{ id: 'once', resource: { script: { program: 'sh', manages: 'a-file', apply: 'echo ran' } } }],
});

describe('three replicas with NATS', () => {
  let server: PostgresServer | undefined;
  let missing: string | null = null;
  beforeAll(async () => {
    missing = natsMissing();
    if (missing !== null) return;
    try {
      server = await startPostgres();
    } catch (error) {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      missing = error.message;
    }
  });
  beforeEach(({ skip }) => {
    if (missing !== null) skip(missing);
  });
  afterAll(() => server?.stop());

  test('replicas show the same events, even after NATS was killed', async ({ stage, onTestFinished }) => {
    const nats = new NatsServer();
    onTestFinished(() => nats.stop());
    await nats.start();
    const { a, b, c } = await startReplicas(stage, await server!.createDatabase(), { MUSTER_NATS_URL: nats.url });
    const replicas = [a, b, c];
    const token = await signIn(createClient({ url: a.url, transport: transportOf(a) }), a.operator);
    const at = (replica: Orchestrator) =>
      createClient({ url: replica.url, token: async () => token, transport: transportOf(replica) });
    /** Waits until each replica reports these reasons for being degraded. */
    const expectReasons = async (reasons: string[]) => {
      for (const replica of replicas)
        await eventually(`the reasons are ${reasons.join()}`, async () =>
          (await at(replica)(getStatus, {})).reasons.join() === reasons.join() ? true : null,
        );
    };
    await expectReasons([]);
    const streams = replicas.map((replica) => followEvents(replica, token));
    onTestFinished(() => streams.forEach((stream) => void stream.close()));
    for (const stream of streams)
      await eventually('the stream has begun', async () => (stream.text !== '' ? true : null));
    const agent = stage.agentAt('web', [
      `127.0.0.1:${b.agentPort}`,
      ...['--orchestrator-key', a.publicKey, '--token', await a.token('web')],
    ]);
    await agent.start();
    await at(a)(uploadModule, { body: { name: 'once', content: module } });
    /** Applies at replica A, and waits until the operation has ended. @returns its ID */
    const apply = async () => {
      const params = { node_id: agent.nodeId };
      const { operation_id, status } = await at(a)(applyAgent, { params, body: { modules: ['once'] } });
      expect(status).toBe('succeeded');
      return operation_id;
    };
    const expectSameHints = async (id: string) => {
      for (const stream of streams)
        await eventually('all streams have the end of the operation', async () =>
          hintsOf(stream.text, id).at(-1) === 'succeeded' ? true : null,
        );
      const [one, ...others] = streams.map(({ text }) => hintsOf(text, id));
      expect(one).toContain('running');
      expect(others).toEqual([one, one]);
    };

    await expectSameHints(await apply());

    await nats.kill();
    await expectReasons(['bus']);
    for (const replica of replicas) {
      expect(await statusOf(replica, '/readyz')).toBe(200);
      expect((await at(replica)(getHealth, {})).bus).toMatchObject({ connected: false });
    }
    await apply();

    await nats.start();
    await expectReasons([]);
    for (const stream of streams)
      await eventually('the stream tells its client to reload', async () =>
        stream.text.includes('event: operations\ndata: {"operations":null}') ? true : null,
      );
    await expectSameHints(await apply());

    // The event chains of all replicas are equal, whether replicas noticed new events through NATS or by polling.
    const last = Math.max(...streams.map(({ text }) => placesOf(text).at(-1)!.place));
    for (const stream of streams)
      await eventually('all streams have all events', async () =>
        placesOf(stream.text).at(-1)!.place >= last ? true : null,
      );
    const [one, ...others] = streams.map(({ text }) => placesOf(text).filter(({ place }) => place <= last));
    expect(one!.map(({ place }) => place)).toEqual(one!.map((_, index) => one![0]!.place + index));
    expect(others).toEqual([one, one]);
    for (const replica of replicas)
      expect(replica.program.lastLines(10_000).join('\n')).toContain('no connection to NATS');
  });

  test('replicas relay terminals and live output, and end or continue terminals when replicas are killed', async ({
    stage,
    onTestFinished,
  }) => {
    const nats = new NatsServer();
    onTestFinished(() => nats.stop());
    await nats.start();
    const { a, b, c, at, agent } = await startWithTerminals(stage, await server!.createDatabase(), nats);
    await expectLiveOutput(stage, at(a), agent.nodeId);
    const { session_id, ws_url } = await at(a)(openTerminal, { params: { node_id: agent.nodeId } });
    const params = { session_id };
    const attach = async (replica: Orchestrator, mode: 'control' | 'view') =>
      TerminalScreen.connect(replica, (await at(replica)(attachTerminal, { params, body: { mode } })).ws_url);
    const operator = await TerminalScreen.connect(a, ws_url);
    operator.type('echo "one=$((40 + 2))."\n');
    await operator.shows(/one=42\./);
    const viewer = await attach(c, 'view');
    await viewer.shows(/one=42\./);
    operator.type('seq 1 100000; echo "two=$((40 + 3))."\n');
    for (const screen of [operator, viewer]) await screen.shows(/99999\s+100000\s+two=43\./);
    operator.resize(100, 30);
    await eventually('the viewer gets the size', async () =>
      viewer.notices.some(({ cols, rows }) => cols === 100 && rows === 30) ? true : null,
    );

    await a.kill9();
    const again = await attach(c, 'control');
    await again.shows(/two=43\./);
    again.type('echo "three=$((40 + 4))."\n');
    for (const screen of [again, viewer]) await screen.shows(/three=44\./);
    const { attached } = await at(c)(getTerminal, { params });
    expect(attached.map(({ mode }) => mode).sort()).toEqual(['control', 'view']);

    // Clients get output only after it is stored.
    await b.kill9();
    for (const screen of [again, viewer]) expect(await screen.end()).not.toMatchObject({ type: 'error' });
    const ended = await eventually('the terminal is interrupted', async () => {
      const session = await at(c)(getTerminal, { params });
      return session.status === 'active' ? null : session;
    });
    expect(ended).toMatchObject({ status: 'interrupted', end_reason: 'the replica that held the terminal has ended' });
    const refusal = await attach(c, 'control').catch((error: ApiError) => error.problem.code);
    expect(refusal).toBe('terminal_ended');
    const pieces: Uint8Array[] = [];
    const { body } = await at(c)(getTranscript, { params, query: { format: 'raw' } });
    for await (const piece of body) pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toContain('three=44.');
  });
});

/**
 * Starts three replicas with NATS, and an agent with terminals that is connected to replica B. Signs the operator in on
 * all replicas.
 */
async function startWithTerminals(stage: Stage, url: string, nats: NatsServer) {
  const set = await startReplicas(stage, url, { MUSTER_NATS_URL: nats.url });
  const { a, b, c } = set;
  const token = await signIn(createClient({ url: a.url, transport: transportOf(a) }), a.operator);
  const at = (replica: Orchestrator) =>
    createClient({ url: replica.url, token: async () => token, transport: transportOf(replica) });
  const config = join(stage.dir, 'agent.yaml');
  writeFileSync(config, 'remote_terminal: { enabled: true, shell: /bin/sh }\n');
  const flags = ['--config', config, '--orchestrator-key', a.publicKey, '--token', await a.token('web')];
  const agent = stage.agentAt('web', [`127.0.0.1:${b.agentPort}`, ...flags]);
  await agent.start();
  for (const replica of [a, b, c])
    await eventually('the agent is connected, and the replicas hear each other', async () => {
      const { connected } = await at(replica)(getAgent, { params: { node_id: agent.nodeId } });
      return connected && (await at(replica)(getStatus, {})).reasons.length === 0 ? true : null;
    });
  return { ...set, at, agent };
}

/** Expects replica A to show the output of a running script on an agent that is connected to replica B. */
async function expectLiveOutput(stage: Stage, at: ReturnType<typeof createClient>, nodeId: string): Promise<void> {
  const go = join(stage.dir, 'go');
  const apply = `echo step 1; until [ -e '${go}' ]; do sleep 0.1; done`;
  const resources = [{ id: 'slow', resource: { script: { program: 'sh', manages: 'slow', apply } } }];
  const content = JSON.stringify({ name: 'slow', supports: [{ platform: 'linux' }], resources });
  await at(uploadModule, { body: { name: 'slow', content } });
  const params = { node_id: nodeId };
  const { operation_id } = await at(applyAgent, { params, body: { modules: ['slow'] }, respondAsync: true });
  await eventually('the output is shown while the script runs', async () => {
    const { output } = (await at(getOperationOutput, { params: { ...params, operation_id } })) as OperationOutput;
    return Object.values(output).some(({ stdout, running }) => stdout === 'step 1\n' && running === true) ? true : null;
  });
  writeFileSync(go, '');
}

/** Returns the statuses of an operation in the frames of a stream. */
function hintsOf(text: string, id: string): string[] {
  const frames = [...text.matchAll(/^event: operation\ndata: (.*)\n\n/gm)].map(([, data]) => JSON.parse(data!));
  return frames.filter(({ operation_id }) => operation_id === id).map(({ status }) => status);
}

/** Returns the position and the hash of each audit event in the text of an event stream. */
const placesOf = (text: string): { place: number; hash: string }[] =>
  [...text.matchAll(/^id: \d+\ndata: (.*)\n\n/gm)].map(([, data]) => {
    const { place, hash } = JSON.parse(data!);
    return { place, hash };
  });

/** Returns the HTTP status of a page. */
const statusOf = (replica: Orchestrator, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(`${replica.url}${path}`, { rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
