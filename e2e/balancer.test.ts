import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Program } from '../tools/suite/program.ts';
import { documented } from './documented.ts';
import { freePort } from './free-port.ts';
import { test } from './harness.ts';
import { missing } from './requirements.ts';
import type { Orchestrator, Stage } from './stage.ts';

/** Starts HAProxy in front of a running orchestrator. @returns the ports */
async function startBalancer(stage: Stage, orchestrator: Orchestrator): Promise<{ api: number; agents: number }> {
  const [api, agents] = [await freePort(), await freePort()];
  const config = join(stage.folder('haproxy'), 'haproxy.cfg');
  const text = documented(
    'docs/operations.md',
    { language: 'haproxy' },
    {
      'bind :443': `bind 127.0.0.1:${api}`,
      'bind :4747': `bind 127.0.0.1:${agents}`,
      '192.0.2.11:4748': `127.0.0.1:${orchestrator.apiPort} source 127.0.0.2`,
      '192.0.2.11:4747': `127.0.0.1:${orchestrator.agentPort} source 127.0.0.2`,
    },
  );
  writeFileSync(config, text);
  stage.watch(new Program({ name: 'haproxy', command: '/usr/sbin/haproxy', args: ['-db', '-f', config] }));
  return { api, agents };
}

test('HAProxy in front of both ports, configured as documented, passes on the client addresses', async ({
  stage,
  skip,
}) => {
  const reason = missing('haproxy');
  if (reason !== null) skip(reason);
  const env = { MUSTER_PROXY_PROTOCOL_NETWORKS: '127.0.0.2' };
  const orchestrator = await stage.orchestrator({ env });
  const { api, agents } = await startBalancer(stage, orchestrator);

  const connect = [`127.0.0.1:${agents}`, '--orchestrator-key', orchestrator.publicKey];
  const agent = stage.agentAt('web-1', [...connect, '--token', await orchestrator.token('web-1')]);
  await agent.start();
  const find = (fields: Record<string, unknown>) =>
    orchestrator.program
      .lastLines(10_000)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
  // HAProxy connects from 127.0.0.2.
  await expect.poll(() => find({ node_id: agent.nodeId, remote_ip: '127.0.0.1' })).toBeDefined();

  const ask = async (port: number, localAddress: string) => {
    const path = '/api/v1/auth/challenge';
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', localAddress, rejectUnauthorized: false });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };
  expect(await ask(api, '127.0.0.9')).toBe(400);
  await expect.poll(() => find({ msg: 'request', ip: '127.0.0.9' })).toBeDefined();
  await expect(ask(orchestrator.apiPort, '127.0.0.2')).rejects.toThrow();
  await expect.poll(() => find({ remote_ip: '127.0.0.2', refused: 1 })).toBeDefined();

  // HAProxy sends new connections only to a server whose health check succeeds.
  await orchestrator.stop();
  await orchestrator.start();
  await agent.connected(2);
  await expect.poll(() => ask(api, '127.0.0.9').catch(() => null)).toBe(400);
});
