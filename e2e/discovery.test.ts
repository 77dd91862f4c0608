import type { Agent, Operation } from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { type Networks, test } from './networks.ts';
import { missing } from './requirements.ts';

const machines = {
  orchestrator: ['10.77.0.1/24', 'fd77::1/64'],
  a: ['10.77.0.11/24'],
  b: ['10.77.0.12/24'],
  // Has no IPv4 address.
  c: ['fd77::13/64'],
};

const agentOn = (networks: Networks, machine: string, dataDir: string) =>
  networks.run(machine, ['agent', '--data-dir', dataDir, '--hostname', machine, '--log-format', 'json']);

test('`muster discover` finds agents without an orchestrator by address and by broadcast, and they stay enrolled', async ({
  stage,
  networks,
  skip,
}) => {
  const reason = missing('linux', 'root', 'namespaces');
  if (reason !== null) {
    if (process.env.CI === 'true') throw new Error(reason);
    skip(reason);
  }
  networks.create(machines);
  const { public_key } = await networks.muster<{ public_key: string }>('orchestrator', ['operator', 'init'], {});
  const orchestrator = networks.run('orchestrator', [
    ...['orchestrator', '--data-dir', stage.folder('orchestrator'), '--log-format', 'json'],
    ...['--bootstrap-key', public_key, '--bootstrap-username', 'ada'],
  ]);
  const ready = await orchestrator.event('ready');
  const env = { MUSTER_URL: String(ready.api_url), MUSTER_FINGERPRINT: String(ready.fingerprint) };
  const here = <T>(...args: string[]) => networks.muster<T>('orchestrator', args, env);
  const discover = (...args: string[]) => here<{ sent_to: string[]; pending: Agent[] }>('discover', ...args);

  const dirs = { a: stage.folder('agent-a'), b: stage.folder('agent-b'), c: stage.folder('agent-c') };
  const agents = {
    a: agentOn(networks, 'a', dirs.a),
    b: agentOn(networks, 'b', dirs.b),
    c: agentOn(networks, 'c', dirs.c),
  };
  for (const agent of Object.values(agents)) await agent.event('listening');

  const one = await discover('10.77.0.12:4747', '--wait', '1');
  expect(one.sent_to).toEqual(['10.77.0.12:4747']);
  await agents.b.event('connected');
  const pending = async () => (await here<Agent[]>('agents', 'list', '--status', 'pending')) as Agent[];
  expect(await pending()).toMatchObject([{ initial_hostname: 'b', initial_ip: '10.77.0.12', pin_source: 'discovery' }]);

  // Discovers the other agents by broadcast, over IPv4 and IPv6.
  const all = await discover('--wait', '5');
  expect(all.sent_to.toSorted()).toEqual(['10.77.0.255:4747', '[ff02::1%lan]:4747']);
  await agents.a.event('connected');
  await agents.c.event('connected');
  const waiting = (await pending()).toSorted((x, y) => x.initial_hostname.localeCompare(y.initial_hostname));
  expect(waiting).toMatchObject([
    { initial_hostname: 'a', initial_ip: '10.77.0.11', pin_source: 'discovery', connected: true },
    { initial_hostname: 'b' },
    { initial_hostname: 'c', initial_ip: 'fd77::13', pin_source: 'discovery', connected: true },
  ]);
  expect(all.pending.map(({ initial_hostname }) => initial_hostname).toSorted()).toEqual(['a', 'c']);
  expect(agents.a.lastLines(60).join('\n')).toContain('no orchestrator key is pinned');

  for (const { node_id, initial_hostname } of waiting)
    await here('agents', 'approve', node_id, '--name', `web-${initial_hostname}`);
  await here('modules', 'upload', 'examples/motd.yml');
  const plan = await here<Operation>('plan', 'web-a', '--module', 'motd');
  expect(plan).toMatchObject({ kind: 'plan', status: 'succeeded', node_id: waiting[0]!.node_id });

  // The agent has stored the orchestrator's address. After a restart, it connects and no longer listens for discovery.
  expect((await agents.a.stop()).code).toBe(0);
  const again = agentOn(networks, 'a', dirs.a);
  expect(await again.event('connected')).toMatchObject({ node_id: waiting[0]!.node_id });
  expect(again.lastLines(60).join('\n')).not.toContain('"event":"listening"');
  const unanswered = await discover('10.77.0.11:4747', '--wait', '1');
  expect(unanswered.pending).toEqual([]);
  await eventually('the record shows the agent as connected and pinned by discovery', async () => {
    const [shown] = (await here<Agent[]>('agents', 'list', '-q', 'web-a')) as Agent[];
    return shown?.connected && shown.pin_source === 'discovery' ? true : null;
  });
});
