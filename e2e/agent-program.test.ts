import { spawnSync } from 'node:child_process';
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { applyAgent, getAgent, getOperationOutput, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { root } from '../tools/suite/cli.ts';
import { eventually } from './eventually.ts';
import { type Orchestrator, test } from './harness.ts';
import { missing } from './requirements.ts';

/** Returns the output lines of a program, parsed if they are JSON. */
const lines = (program: { lastLines(count: number): string[] }) =>
  program.lastLines(400).map((line) => {
    try {
      return JSON.parse(line) as Record<string, unknown>;
    } catch {
      return line;
    }
  });

const logged = (program: { lastLines(count: number): string[] }, text: string) =>
  eventually(`"${text}" is logged`, async () => program.lastLines(400).find((line) => line.includes(text)) ?? null);

/**
 * Forwards bytes between the agent and the orchestrator. Cuts each link after a given number of bytes from the agent.
 */
class Cutter {
  port = 0;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  cuts = 0;

  constructor(target: number, cutAfter: number[]) {
    this.server = createServer((agent) => {
      const orchestrator = connectTcp(target, '127.0.0.1');
      const limit = cutAfter[this.cuts] ?? Number.POSITIVE_INFINITY;
      let bytes = 0;
      agent.on('data', (piece) => {
        bytes += piece.length;
        if (bytes > limit) {
          this.cuts++;
          agent.resetAndDestroy();
          orchestrator.resetAndDestroy();
        } else orchestrator.write(piece);
      });
      orchestrator.pipe(agent);
      for (const socket of [agent, orchestrator]) {
        this.sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          agent.destroy();
          orchestrator.destroy();
        });
      }
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.port = (this.server.address() as { port: number }).port;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }
}

const connectLine = (orchestrator: Orchestrator, port = orchestrator.agentPort) => [
  `127.0.0.1:${port}`,
  '--orchestrator-key',
  orchestrator.publicKey,
];

describe('muster agent', () => {
  test('the agent reports an invalid command line and exits with code 2', async ({ stage }) => {
    const unfound = join(stage.folder('unfound'), 'agent.yml');
    writeFileSync(unfound, 'discovery: { enabled: false }\n');
    const faults: [string[], string][] = [
      [['--confg', 'x'], "Unknown option '--confg'"],
      [['connect', 'nowhere'], '"nowhere" is not HOST:PORT'],
      [
        ['--data-dir', stage.folder('empty'), '--config', unfound],
        'no orchestrator is known yet, and discovery.enabled is false; connect once with',
      ],
    ];
    for (const [args, message] of faults) {
      const program = stage.run('agent', ['agent', ...args]);
      expect((await program.ended).code).toBe(2);
      expect(program.lastLines(10).join('\n')).toContain(message);
    }
    const help = stage.run('help', ['agent', '--help']);
    expect((await help.ended).code).toBe(0);
    expect(help.lastLines(40).join('\n')).toContain('Examples:');
  });

  test('the agent stores its orchestrator, prints only JSON lines, sends `bye`, and refuses files that others can read', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    expect((await agent.stop()).code).toBe(0);
    const params = { node_id: agent.nodeId };
    await eventually('the agent is reported as disconnected', async () =>
      (await orchestrator.call(getAgent, { params })).connected ? null : true,
    );

    const again = stage.run('agent', ['agent', '--data-dir', agent.dataDir, '--log-format', 'json']);
    expect(await again.event('connected')).toMatchObject({ node_id: agent.nodeId });
    expect((await again.stop()).code).toBe(0);
    for (const line of lines(again)) expect(line).toMatchObject({ level: expect.any(String) });

    chmodSync(join(agent.dataDir, 'agent.key'), 0o644);
    const loose = stage.run('agent', ['agent', '--data-dir', agent.dataDir]);
    expect((await loose.ended).code).toBe(1);
    expect(loose.lastLines(5).join('\n')).toContain(`chmod 0600 ${agent.dataDir}/agent.key`);
  });

  test('the agent reloads a changed configuration, and keeps the current one if the file is invalid', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const path = join(stage.folder('etc'), 'agent.yaml');
    const write = (text: string) => {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    };
    write('metrics: { collection_interval: 10 }\n');
    const agent = await stage.agent(orchestrator, 'web-1', { flags: ['--config', path] });
    write('metrics: { collection_interval: 20 }\n');
    await logged(agent.program, 'metrics.collection_interval: 10 → 20');
    write('metrics: { colection_interval: 5 }\n');
    const broken = await logged(agent.program, 'the configuration is invalid; keeping the previous one');
    expect(broken).toContain('metrics.colection_interval is not known: did you mean');
    write('metrics: { collection_interval: 20, enabled: false }\n');
    await logged(agent.program, 'metrics.enabled: true → false');
    await agent.stop();

    write('- nothing');
    const flags = ['--data-dir', agent.dataDir, '--config', path];
    const program = stage.run('agent', ['agent', ...flags]);
    expect((await program.ended).code).toBe(2);
    expect(program.lastLines(5).join('\n')).toContain(`${path}: the file must be a mapping`);
  });

  test.runIf(process.platform === 'linux').for(['orchestrator', 'agent'] as const)(
    'the %s stops if its data directory cannot be created',
    async (what, { stage }) => {
      const args = what === 'agent' ? ['connect', '127.0.0.1:1'] : ['--api-port', '0', '--agent-port', '0'];
      const program = stage.run(what, [what, '--data-dir', '/proc/x', ...args]);
      expect((await program.ended).code).toBe(1);
      expect(program.lastLines(5).join('\n')).toContain('/proc/x');
    },
  );

  test('the agent reads the token from the environment and does not pass it on to programs', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const env = { MUSTER_TOKEN: await orchestrator.token('web-1') };
    const agent = stage.agentAt('web-1', connectLine(orchestrator, orchestrator.agentPort), { env });
    await agent.start();
    const params = { node_id: agent.nodeId };
    expect((await orchestrator.call(getAgent, { params })).status).toBe('approved');
    const script = { program: 'sh', manages: 'nothing', apply: 'test -n "$PATH" && test -z "$MUSTER_TOKEN"' };
    const content = JSON.stringify({
      name: 'bare',
      supports: [{ platform: 'linux' }],
      resources: [{ id: 'bare', resource: { script } }],
    });
    await orchestrator.call(uploadModule, { body: { name: 'bare', content } });
    const operation = await orchestrator.call(applyAgent, { params, body: { modules: ['bare'] } });
    expect(operation.status).toBe('succeeded');
  });

  test('the agent delivers a large report even if the link breaks repeatedly during the transfer', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const cutter = new Cutter(orchestrator.agentPort, [30_000, 60_000, 90_000]);
    await cutter.listen();
    try {
      const line = [...connectLine(orchestrator, cutter.port), '--token', await orchestrator.token('web-1')];
      const agent = stage.agentAt('web-1', line);
      await agent.start();
      const params = { node_id: agent.nodeId };
      const script = {
        program: 'sh',
        manages: 'noise',
        apply: 'i=0; while [ $i -lt 4000 ]; do echo "line $i \\"quoted\\" — wide"; i=$((i+1)); done',
      };
      const content = JSON.stringify({
        name: 'noise',
        supports: [{ platform: 'linux' }],
        resources: [{ id: 'noise', resource: { script } }],
      });
      await orchestrator.call(uploadModule, { body: { name: 'noise', content } });
      const operation = await orchestrator.call(applyAgent, { params, body: { modules: ['noise'] } });
      expect(operation.status).toBe('succeeded');
      expect(cutter.cuts).toBe(3);
      const { output } = await orchestrator.call(getOperationOutput, {
        params: { ...params, operation_id: operation.operation_id },
      });
      const said = Object.values(output)[0]!.stdout.trimEnd().split('\n');
      expect(said).toHaveLength(4_000);
      expect(said[3_999]).toBe('line 3999 "quoted" — wide');
    } finally {
      cutter.close();
    }
  });

  test('the agent starts even if its bundle cannot be written', ({ skip }) => {
    const reason = missing('linux', 'root', 'namespaces');
    if (reason) skip(reason);
    // Mounts an empty, read-only file system in a private mount namespace.
    const command =
      'mkdir -p .cache/bundles && mount -t tmpfs -o ro none .cache/bundles && exec cli/bin/muster agent --help';
    const { status, stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', command], {
      cwd: root,
      encoding: 'utf8',
      timeout: 300_000,
    });
    expect(stderr).toMatch(
      /^warning: cannot store the bundles; starting the agent from its sources, [^\n]*: EROFS: [^\n]*\n$/,
    );
    expect(stdout).toContain('muster agent');
    expect(status).toBe(0);
  });
});
