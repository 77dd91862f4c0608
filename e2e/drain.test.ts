import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { applyAgent, getAgent, getOperation, type Operation, putTag, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { signIn } from './client.ts';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';

test('an orchestrator that is stopped under load completes pending responses and loses no acknowledged write', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  const agent = await stage.agent(orchestrator, 'web-1');
  const params = { node_id: agent.nodeId };
  const [started, go, done] = ['begun', 'go', 'done'].map((name) => join(stage.dir, name)) as [string, string, string];
  const apply = `touch '${started}'; until test -e '${go}'; do sleep 0.05; done; touch '${done}'`;
  const script = { program: 'sh', manages: 'a-line', apply };
  await call(uploadModule, {
    body: {
      name: 'slow',
      content: JSON.stringify({
        name: 'slow',
        supports: [{ platform: 'linux' }],
        resources: [{ id: 'slow', resource: { script } }],
      }),
    },
  });
  const ca = readFileSync(join(orchestrator.dataDir, 'api.crt'), 'utf8');
  const authorization = `Bearer ${await signIn(call, orchestrator.operator)}`;

  const events = follow(`${orchestrator.url}/api/v1/events`, ca, authorization);
  await eventually('the stream has sent an event', async () => (events.text !== '' ? true : null));
  const applied = call(applyAgent, { params, body: { modules: ['slow'] } });
  await eventually('the script is running', async () => (existsSync(started) ? true : null));

  // Opens a connection whose request never completes, and an idle keep-alive connection.
  const half = connect({ port: orchestrator.apiPort, host: '127.0.0.1', ca, checkServerIdentity: () => undefined });
  half.on('error', () => {});
  half.write(
    `PUT /api/v1/agents/${agent.nodeId}/tags/never HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n` +
      'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"value":',
  );
  const idle = connect({ port: orchestrator.apiPort, host: '127.0.0.1', ca, checkServerIdentity: () => undefined });
  idle.on('error', () => {});

  const answered: string[] = [];
  let refused = 0;
  let last = '';
  const writer = async (name: number) => {
    for (let n = 0; refused === 0; n++) {
      last = `w${name}-${n % 20}`;
      const value = String(n);
      try {
        await call(putTag, { params: { ...params, key: `w${name}-${n % 20}` }, body: { value } });
        answered[name] = `w${name}-${n % 20}=${value}`;
      } catch {
        refused++;
      }
    }
  };
  const writers = [0, 1, 2, 3].map(writer);
  await eventually('each writer has received a response', async () => (answered.length === 4 ? true : null));

  const stopped = orchestrator.stop();
  const operation = (await applied) as Operation;
  expect(operation.status).toBe('running');
  await Promise.all(writers);
  expect(last).not.toBe('');
  // A drain that exceeds its time limit results in a different exit code.
  expect((await stopped).code).toBe(0);
  await eventually('the stream has ended', async () => (events.ended === 'end' ? true : null));
  writeFileSync(go, '');

  await orchestrator.start();
  const { tags } = await call(getAgent, { params });
  for (const tag of answered) {
    const [key = '', value = ''] = tag.split('=');
    // Each client's last write may have been committed without a response.
    expect(Number(tags[key])).toBeGreaterThanOrEqual(Number(value));
  }
  await eventually('the apply has ended', async () => {
    const { status } = await call(getOperation, { params: { operation_id: operation.operation_id } });
    return status === 'succeeded' ? true : null;
  });
  expect(existsSync(done)).toBe(true);
  half.destroy();
  idle.destroy();
});

interface Followed {
  text: string;
  /** Whether the response was complete or cut off; null while it is open. */
  ended: 'end' | 'aborted' | null;
}

function follow(url: string, ca: string, authorization: string): Followed {
  const followed: Followed = { text: '', ended: null };
  const sent = request(url, { ca, checkServerIdentity: () => undefined, headers: { authorization } }, (answer) => {
    answer.setEncoding('utf8');
    answer.on('data', (text: string) => {
      followed.text += text;
    });
    answer.on('end', () => {
      followed.ended ??= 'end';
    });
    answer.on('aborted', () => {
      followed.ended ??= 'aborted';
    });
  });
  sent.on('error', () => {
    followed.ended ??= 'aborted';
  });
  sent.end();
  return followed;
}
