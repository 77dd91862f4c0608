import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '@muster/protocol/client';
import { getAgent, getStatus, putTag } from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { eventually } from './eventually.ts';
import { type Orchestrator, type Stage, test } from './harness.ts';
import { mainJob } from './main-job.ts';
import { connected, expectDone, startTrial } from './trial.ts';

describe('on PostgreSQL', () => {
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

  const orchestratorOn = async (stage: Stage): Promise<Orchestrator> =>
    stage.orchestrator({ env: { MUSTER_DATABASE_URL: await server!.createDatabase() } });

  test('an operator plans, applies, checks, changes, and removes a site on an agent, with PostgreSQL', async ({
    stage,
  }) => {
    const orchestrator = await orchestratorOn(stage);
    await mainJob(stage, orchestrator);
    const password = new URL(await server!.createDatabase()).password;
    expect(orchestrator.program.lastLines(200).join('\n')).not.toContain(password);
  });

  test('an apply finishes once and loses no acknowledged change when the orchestrator is killed, with PostgreSQL', async ({
    stage,
  }) => {
    const orchestrator = await orchestratorOn(stage);
    const agent = await stage.agent(orchestrator, 'web-1');
    const trial = await startTrial(stage, { orchestrator, agent }, 'script');
    await orchestrator.kill9();
    await orchestrator.start();
    await connected({ orchestrator, agent });
    await expectDone(trial, 'site-script');
  });

  test('the orchestrator refuses writes while PostgreSQL is down, loses no acknowledged write, and recovers', async ({
    stage,
  }) => {
    const orchestrator = await orchestratorOn(stage);
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const params = { node_id: agent.nodeId };
    /** The last acknowledged value of each key. The writers reuse 50 keys each, because the number of tags is limited. */
    const answered = new Map<string, number>();
    let count = 0;
    const refused = new Set<string>();
    let writing = true;
    const writers = Promise.all(
      [0, 1, 2].map(async (person) => {
        for (let turn = 0; writing; turn++) {
          const key = `p${person}.n${turn % 50}`;
          await call(putTag, { params: { ...params, key }, body: { value: `${turn}` } }).then(
            () => {
              answered.set(key, turn);
              count++;
            },
            (error: unknown) => refused.add(error instanceof ApiError ? error.problem.code : String(error)),
          );
          if (refused.size > 0) await sleep(20);
        }
      }),
    );
    const trial = await startTrial(stage, { orchestrator, agent }, 'script');
    await server!.kill();
    await eventually('the orchestrator refuses a write', async () => (refused.size > 0 ? true : null));
    await eventually('the orchestrator is not ready', async () => ((await ready(orchestrator)) ? null : true));
    expect(await call(getStatus, {})).toMatchObject({ status: 'degraded' });
    await sleep(500);
    expect(orchestrator.program.ending).toBeNull();

    await server!.start();
    await eventually('the orchestrator is ready again', async () => ((await ready(orchestrator)) ? true : null));
    const before = count;
    await eventually('the orchestrator accepts writes again', async () => (count > before + 10 ? true : null));
    writing = false;
    await writers;
    await connected({ orchestrator, agent });
    await expectDone(trial, 'site-script');
    const { tags } = await call(getAgent, { params });
    // A later value may have been stored without an acknowledgment.
    for (const [key, value] of answered) expect(Number(tags[key]), key).toBeGreaterThanOrEqual(value);
    for (const code of refused) expect(['storage_unavailable', 'outcome_unknown']).toContain(code);
    // A health check that started during the outage may finish only now.
    await eventually('the status is ok', async () => ((await call(getStatus, {})).status === 'ok' ? true : null));
  });
});

/** Reports whether `/readyz` responds with 200. */
function ready({ url }: Orchestrator): Promise<boolean> {
  return new Promise((resolve, reject) => {
    request(`${url}/readyz`, { rejectUnauthorized: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    })
      .on('error', reject)
      .end();
  });
}
