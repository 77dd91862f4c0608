import { AgentFleet } from './load/agent-fleet.ts';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import { ServerProcess } from './servers/server-process.ts';

/**
 * Measures the orchestrator's memory for an idle agent, its memory for an agent that has sent 64 KiB, and its CPU time to
 * accept agents. The baseline is a `ws` server over TLS 1.3 that only verifies one signature per connection. The agents
 * run the real connection code in separate processes.
 *
 *     node bench/src/connect.ts [--agents 2000] [--at-once 256] [--rounds 3] [--json]
 */
const options = benchOptions({ numbers: { agents: [2000, 4], 'at-once': [256, 4], rounds: [3, 1] } });
const { agents, rounds, 'at-once': atOnce } = options;
const sentBytes = 64 * 1024;
/** Milliseconds that the kernel and timers need to settle after the last agent has connected. */
const settleMs = 1_000;

interface Figures {
  idleKb: number;
  afterSendingKb: number;
  cpuSecs: number;
  wallSecs: number;
}

/** Starts an orchestrator with its database, or the server from a file in `servers`. */
async function start(server: string): Promise<{ server: ServerProcess | OrchestratorProcess; token: string | null }> {
  if (server !== 'orchestrator') return { server: await ServerProcess.start(server), token: null };
  const orchestrator = await OrchestratorProcess.start();
  return { server: orchestrator, token: await orchestrator.enrolmentToken(agents) };
}

/**
 * Measures one server. The first half of the agents causes one-time allocations and lets the heap grow to its size under
 * load. The memory that the second half adds is the cost of its agents.
 */
async function measure(name: string): Promise<Figures> {
  const { server, token } = await start(name);
  const target = { ...server.address, token };
  const half = agents / 2;
  let cpuSecs = 0;
  let wallSecs = 0;
  const connect = async () => {
    const fleet = new AgentFleet(half);
    const before = server.usage.cpuSecs;
    wallSecs += await fleet.connect(target, atOnce);
    cpuSecs += server.usage.cpuSecs - before;
    return fleet;
  };
  const settled = async () => {
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    return (await server.settledUsage()).rss / half / 1024;
  };
  const first = await connect();
  await first.send(sentBytes);
  const before = await settled();
  const second = await connect();
  const idle = await settled();
  await second.send(sentBytes);
  const after = await settled();
  await first.stop();
  await second.stop();
  await server.stop();
  printProgress(`${name}: ${(agents / cpuSecs).toFixed(0)} agents/CPU s, ${(idle - before).toFixed(1)} KB/idle agent`);
  return { idleKb: idle - before, afterSendingKb: after - before, cpuSecs, wallSecs };
}

/** Returns the median of each figure. */
function middle(all: Figures[]): Figures {
  const of = (key: keyof Figures) => median(all.map((one) => one[key]));
  return {
    idleKb: of('idleKb'),
    afterSendingKb: of('afterSendingKb'),
    cpuSecs: of('cpuSecs'),
    wallSecs: of('wallSecs'),
  };
}

const servers = { orchestrator: 'orchestrator', gateway: 'gateway-server.ts', bare: 'bare-server.ts' };
const measured: Record<keyof typeof servers, Figures[]> = { orchestrator: [], gateway: [], bare: [] };
for (let round = 0; round < rounds; round++)
  for (const name of ['bare', 'gateway', 'orchestrator'] as const) measured[name].push(await measure(servers[name]));
const orchestrator = middle(measured.orchestrator);
const gateway = middle(measured.gateway);
const bare = middle(measured.bare);

console.log(`${agents} agents, ${atOnce} concurrent dials, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}\n`);
const row = (name: string, f: Figures) => [name, f.idleKb, f.afterSendingKb, f.cpuSecs, agents / f.cpuSecs, f.wallSecs];
console.log(
  table(
    ['server', 'KB/idle agent', 'KB/agent after 64 KiB', 'CPU s', 'agents/CPU s', 's until all connected'],
    [row('orchestrator, with enrollment', orchestrator), row('gateway only', gateway), row('bare ws, TLS 1.3', bare)],
  ),
);
console.log(
  `\n${ratioLine('agents per CPU second, gateway', agents / gateway.cpuSecs, agents / bare.cpuSecs, 'agents/CPU s')}`,
);
process.exitCode = conclude('connect', {
  sizes: `${agents} agents, ${rounds} rounds`,
  figures: {
    idle: orchestrator.idleKb / bare.idleKb,
    afterSending: orchestrator.afterSendingKb / bare.afterSendingKb,
    enroll: orchestrator.cpuSecs / bare.cpuSecs,
    idleGateway: gateway.idleKb / bare.idleKb,
    afterSendingGateway: gateway.afterSendingKb / bare.afterSendingKb,
    acceptGateway: gateway.cpuSecs / bare.cpuSecs,
  },
});
