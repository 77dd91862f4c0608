import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import {
  applyAgent,
  createSecret,
  followEvents,
  getOperationOutput,
  type OperationOutput,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ended, eventually } from './eventually.ts';
import { type AgentProcess, type Orchestrator, test } from './harness.ts';

/** Tests that the API shows script output while the script runs, and that large output uses little memory and CPU time. */

async function begin(
  { call }: Orchestrator,
  agent: AgentProcess,
  name: string,
  script: { apply: string; undo?: string },
): Promise<string> {
  const resource = { script: { program: 'sh', manages: name, ...script } };
  const content = JSON.stringify({ name, supports: [{ platform: 'linux' }], resources: [{ id: name, resource }] });
  await call(uploadModule, { body: { name, content } });
  const params = { node_id: agent.nodeId };
  return (await call(applyAgent, { params, body: { modules: [name] }, respondAsync: true })).operation_id;
}

const outputOf = async ({ call }: Orchestrator, agent: AgentProcess, operation_id: string, resource: string) =>
  ((await call(getOperationOutput, { params: { node_id: agent.nodeId, operation_id } })) as OperationOutput).output[
    resource
  ];

/** A TCP proxy that counts the bytes from the agent to the orchestrator. */
class Meter {
  bytes = 0;
  port = 0;
  readonly #server: Server;

  constructor(target: number) {
    this.#server = createServer((agent) => {
      const orchestrator = connectTcp(target, '127.0.0.1');
      agent.on('data', (piece) => {
        this.bytes += piece.length;
      });
      for (const socket of [agent, orchestrator]) socket.on('error', () => socket.destroy());
      agent.pipe(orchestrator).pipe(agent);
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.port = (this.#server.address() as { port: number }).port;
  }

  close(): void {
    this.#server.close();
  }
}

/** Returns the peak resident memory of a process in bytes. */
const peakOf = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

describe('script output', () => {
  test('the API shows the output of a script and its undo while they run, and all of it when they have finished', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const go = join(stage.dir, 'go');
    const apply = (word: string) =>
      `echo ${word} begun; printf half; echo oh >&2; until test -e ${go}-${word}; do sleep 0.05; done; echo " done"`;
    /** Waits until the API shows exactly this standard output. */
    const seen = (id: string, text: string) =>
      eventually(`the output is ${JSON.stringify(text)}`, async () => {
        const output = await outputOf(orchestrator, agent, id, 'slow/slow');
        return output?.stdout === text && output.stderr === 'oh\n' ? output : null;
      });
    const hints: string[] = [];
    const { body } = await orchestrator.call(followEvents, { query: { category: 'output' } });
    const following = (async () => {
      for await (const chunk of body) hints.push(Buffer.from(chunk).toString());
    })().catch(() => {});

    const id = await begin(orchestrator, agent, 'slow', { apply: apply('apply'), undo: apply('undo') });
    await seen(id, 'apply begun\nhalf');
    expect(await outputOf(orchestrator, agent, id, 'slow/slow')).toEqual({
      stdout: 'apply begun\nhalf',
      stderr: 'oh\n',
      exit_code: null,
      truncated: false,
      running: true,
    });
    await eventually('the event stream has announced the output', async () =>
      hints.join('').includes(`event: output\ndata: {"node_id":"${agent.nodeId}","operation_id":"${id}"`) ? true : null,
    );
    writeFileSync(`${go}-apply`, '');
    expect((await ended(orchestrator.call, id)).status).toBe('succeeded');
    expect(await outputOf(orchestrator, agent, id, 'slow/slow')).toEqual({
      stdout: 'apply begun\nhalf done\n',
      stderr: 'oh\n',
      exit_code: 0,
      truncated: false,
    });

    const params = { node_id: agent.nodeId };
    const removal = await orchestrator.call(applyAgent, { params, body: { modules: [] }, respondAsync: true });
    await seen(removal.operation_id, 'undo begun\nhalf');
    // No output is lost when the orchestrator is killed.
    await orchestrator.kill9();
    await orchestrator.start();
    await agent.connected(2);
    writeFileSync(`${go}-undo`, '');
    expect((await ended(orchestrator.call, removal.operation_id)).status).toBe('succeeded');
    expect((await outputOf(orchestrator, agent, removal.operation_id, 'slow/slow'))?.stdout).toBe(
      'undo begun\nhalf done\n',
    );
    await following;
  });

  test('the API hides the output of a script with a secret, and secret values in the output of other scripts', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    await orchestrator.call(createSecret, { body: { name: 'pin', value: 'hunter2-hunter2' } });
    const go = join(stage.dir, 'go');
    const until = `echo > ${go}-NAME; until test -e ${go}; do sleep 0.05; done`;
    const scripts = [
      { name: 'told', apply: `printf '%s\\n' "\${{ secrets.pin }}" > ${stage.dir}/pin; echo sealed; sleep 2` },
      { name: 'says', apply: `echo before; cat ${stage.dir}/pin; printf 'hunter2-'; ${until.replace('NAME', 'says')}` },
    ];
    const content = JSON.stringify({
      name: 'm',
      supports: [{ platform: 'linux' }],
      resources: scripts.map(({ name, apply }, i) => ({
        id: name,
        resource: { script: { program: 'sh', apply } },
        ...(i === 0 ? {} : { depends_on: ['told'] }),
      })),
    });
    await orchestrator.call(uploadModule, { body: { name: 'm', content } });
    const params = { node_id: agent.nodeId };
    const { operation_id } = await orchestrator.call(applyAgent, {
      params,
      body: { modules: ['m'] },
      respondAsync: true,
    });
    const all: string[] = [];
    await eventually('the output of the second script is shown', async () => {
      const hasSaidAll = existsSync(`${go}-says`);
      const { output } = await orchestrator.call(getOperationOutput, { params: { ...params, operation_id } });
      all.push(JSON.stringify(output));
      return hasSaidAll && output['m/says']?.stdout === 'before\n(sensitive)\n' ? true : null;
    });
    const shown = all.join('\n');
    expect(shown).not.toContain('sealed');
    expect(shown).not.toContain('hunter2');
    writeFileSync(go, '');
    expect((await ended(orchestrator.call, operation_id)).status).toBe('succeeded');
  });

  test('the agent uses bounded memory and network traffic for 300 MB of output', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const meter = new Meter(orchestrator.agentPort);
    await meter.listen();
    try {
      const token = await orchestrator.token('web-1');
      const agent = stage.agentAt('web-1', [
        `127.0.0.1:${meter.port}`,
        ...['--orchestrator-key', orchestrator.publicKey, '--token', token],
      ]);
      await agent.start();
      const before = peakOf(agent.program.pid as number);
      const go = join(stage.dir, 'go');
      const id = await begin(orchestrator, agent, 'loud', {
        apply: `yes "a line that says little" | head -c 300M; until test -e ${go}; do sleep 0.05; done`,
      });
      const shown = await eventually('the output is shown while the script runs', async () => {
        const output = await outputOf(orchestrator, agent, id, 'loud/loud');
        return output?.running && output.truncated ? output : null;
      });
      expect(shown.stdout).toContain('a line that says little');
      writeFileSync(go, '');
      const operation = await ended(orchestrator.call, id);
      expect(operation.status).toBe('succeeded');
      const seconds = (operation.finished_at as number) - (operation.started_at as number) + 2;
      const output = await outputOf(orchestrator, agent, id, 'loud/loud');
      expect(output).toMatchObject({ exit_code: 0, truncated: true });
      // Covers the final report, the output that is sent while the script runs (4 KiB a second), and other messages.
      expect(meter.bytes).toBeLessThan(2 * (output?.stdout.length ?? 0) + 8 * 1024 * seconds + 64 * 1024);
      // Half the size of the output. The limit leaves room for garbage that has not been collected.
      expect(peakOf(agent.program.pid as number) - before).toBeLessThan(150 * 1024 * 1024);
    } finally {
      meter.close();
    }
  });
});
