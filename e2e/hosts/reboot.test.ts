import {
  applyAgent,
  applyAssignment,
  cancelOperation,
  createAssignment,
  createWindow,
  getAgent,
  getOperation,
  getRun,
  listAudit,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ended, eventually } from '../eventually.ts';
import { HostAgent } from './agent.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

const boot = 'cat /proc/sys/kernel/random/boot_id';
const content = `name: reboots
supports: [{ platform: linux }]
resources:
  - id: file
    resource: { file-unix: { path: /srv/marker, content: a } }
  - id: before
    resource: { script: { program: sh, apply: "${boot} > /srv/before", rerun_on: [file] } }
  - id: reboot
    depends_on: [before]
    resource: { reboot: { name: kernel, when: triggered, rerun_on: [file] } }
  - id: after
    depends_on: [reboot]
    resource: { script: { program: sh, apply: "${boot} > /srv/after", rerun_on: [file] } }
verify:
  - command: "${boot} | cmp - /srv/after"
`;

const delayed = `name: reboots
supports: [{ platform: linux }]
resources:
  - resource: { reboot: { name: delayed, delay: 3600 } }
`;

const inWindow = `name: reboots
supports: [{ platform: linux }]
resources:
  - id: file
    resource: { file-unix: { path: /srv/marker, content: a } }
  - id: reboot
    resource: { reboot: { name: kernel, when: triggered, window_only: true, rerun_on: [file] } }
  - depends_on: [reboot]
    resource: { file-unix: { path: /srv/after, content: a } }
`;

describe.skipIf(reason !== null)(`reboot${reason === null ? '' : ` (${reason})`}`, () => {
  test('continues an apply after the reboot, and holds a run while a machine reboots', async ({ hosts, stage }) => {
    const names = ['away', 'back'];
    const [orchestrator, ...machines] = await Promise.all([
      stage.orchestrator({ env: { MUSTER_AGENTS_LOST_AFTER_SECS: '10' } }),
      ...names.map((name) => hosts.start(name)),
    ]);
    const { call } = orchestrator;
    const agents = await Promise.all(
      machines.map((machine) =>
        HostAgent.install(machine, orchestrator, hosts.bridge.address, { tags: { role: 'web' } }),
      ),
    );
    await call(uploadModule, { body: { name: 'reboots', content } });
    await call(createAssignment, { body: { name: 'web', modules: ['reboots'], selector: 'role=web' } });
    // Each machine powers off instead of rebooting, so the first one stays offline until the test starts it.
    for (const machine of machines)
      await machine.sh(
        `printf '#!/bin/sh\\nexec systemctl poweroff\\n' > /usr/local/sbin/shutdown; chmod +x /usr/local/sbin/shutdown`,
      );
    const body = { batch: 1, canary: 1 };
    const { run_id } = await call(applyAssignment, { params: { name: 'web' }, body, respondAsync: true });
    const run = () => call(getRun, { params: { run_id } });
    const isOff = async (agent: HostAgent) =>
      (await call(getAgent, { params: { node_id: agent.nodeId } })).connected ? null : agent;
    const first = await eventually('a machine is away', async () => {
      for (const agent of agents) if ((await isOff(agent)) && agent.machine.leader === 0) return agent;
      return null;
    });
    const second = agents.find((agent) => agent !== first) as HostAgent;
    await eventually('the machine that stays away is reported', async () =>
      (await call(listAudit, { query: { event_type: 'agent.lost' } })).events.some(
        ({ target }) => target?.id === first.nodeId,
      )
        ? true
        : null,
    );
    const held = await run();
    expect(held.status).toBe('running');
    const started = held.results.filter(({ operation_id }) => operation_id !== null);
    expect(started.map(({ node_id, status }) => [node_id, status])).toEqual([[first.nodeId, 'running']]);

    // The other machine really reboots.
    await second.machine.sh('rm /usr/local/sbin/shutdown');
    await first.machine.start();
    const done = await eventually('the run has ended', async () => {
      const now = await run();
      return now.finished_at === null ? null : now;
    });
    expect(done.status).toBe('succeeded');
    await second.machine.rebooted(1);
    expect(second.machine.boots).toBe(2);
    for (const agent of agents) {
      const { operation_id } = done.results.find(({ node_id }) => node_id === agent.nodeId) ?? {};
      const { resources } = await call(getOperation, { params: { operation_id: operation_id as string } });
      expect(resources.map(({ status }) => status)).toEqual(['changed', 'changed', 'changed', 'changed']);
      await agent.machine.sh('! cmp -s /srv/before /srv/after');
    }

    // The system reports that it needs a reboot. A cancellation during the delay prevents it.
    await second.machine.sh('touch /run/reboot-required');
    await call(uploadModule, { body: { name: 'reboots', content: delayed } });
    const order = { params: { node_id: second.nodeId }, body: { modules: ['reboots'] } };
    const { operation_id } = await call(applyAgent, { ...order, respondAsync: true });
    const params = { operation_id };
    await eventually('the apply is running', async () =>
      (await call(getOperation, { params })).status === 'running' ? true : null,
    );
    await call(cancelOperation, { params });
    const cancelled = await ended(call, operation_id);
    expect(cancelled.status).not.toBe('succeeded');
    expect(second.machine.boots).toBe(2);
    await second.machine.sh('test -e /run/reboot-required');
  });

  test('keeps a reboot due until a maintenance window is open', async ({ hosts, stage }) => {
    const [orchestrator, machine] = await Promise.all([stage.orchestrator(), hosts.start('waits')]);
    const { call } = orchestrator;
    const { nodeId } = await HostAgent.install(machine, orchestrator, hosts.bridge.address);
    await call(uploadModule, { body: { name: 'reboots', content: inWindow } });
    const apply = async () => {
      const order = { params: { node_id: nodeId }, body: { modules: ['reboots'] } };
      const { operation_id } = await call(applyAgent, { ...order, respondAsync: true });
      return ended(call, operation_id);
    };
    const waits = {
      status: 'skipped',
      message: expect.stringContaining('no maintenance window of this agent is open'),
    };
    const after = { status: 'skipped', message: expect.stringContaining('`reboot` was skipped') };
    const first = await apply();
    expect(first.status).toBe('succeeded');
    expect(first.resources).toMatchObject([{ status: 'changed' }, waits, after]);
    expect((await apply()).resources).toMatchObject([{ status: 'unchanged' }, waits, after]);
    expect(machine.boots).toBe(1);
    const now = Math.floor(Date.now() / 1000);
    await call(createWindow, { body: { starts_at: now - 60, ends_at: now + 3600, reason: 'kernel' } });
    expect((await apply()).resources.map(({ status }) => status)).toEqual(['unchanged', 'changed', 'changed']);
    await machine.rebooted(1);
    expect(machine.boots).toBe(2);
    expect((await apply()).resources.map(({ status }) => status)).toEqual(Array(3).fill('unchanged'));
    expect(machine.boots).toBe(2);
  });
});
