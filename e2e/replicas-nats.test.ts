import { get } from 'node:https';
import { createClient } from '@muster/protocol/client';
import { applyAgent, getHealth, getStatus, uploadModule } from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { NatsServer, natsMissing } from '../orchestrator/test/nats/nats-server.ts';
import { signIn } from './client.ts';
import { eventually } from './eventually.ts';
import { type Orchestrator, test } from './harness.ts';
import { followEvents, startReplicas, transportOf } from './replica-set.ts';

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

  test('show the same events at each of them, also after NATS was killed', async ({ stage, onTestFinished }) => {
    const nats = new NatsServer();
    onTestFinished(() => nats.stop());
    await nats.start();
    const { a, b, c } = await startReplicas(stage, await server!.createDatabase(), { MUSTER_NATS_URL: nats.url });
    const replicas = [a, b, c];
    const token = await signIn(createClient({ url: a.url, transport: transportOf(a) }), a.operator);
    const at = (replica: Orchestrator) =>
      createClient({ url: replica.url, token: async () => token, transport: transportOf(replica) });
    /** Waits until each replica gives these reasons for being degraded. */
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
    /** Applies at replica A, and waits until the stream of each replica has the end. @returns the ID */
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

    // The chain of events is equal, whether NATS or polling announced its growth.
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
});

/** Returns the statuses of an operation in the frames of a stream. */
function hintsOf(text: string, id: string): string[] {
  const frames = [...text.matchAll(/^event: operation\ndata: (.*)\n\n/gm)].map(([, data]) => JSON.parse(data!));
  return frames.filter(({ operation_id }) => operation_id === id).map(({ status }) => status);
}

/** Returns the events of the audit log in a stream. */
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
