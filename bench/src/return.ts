import { setTimeout as sleep } from 'node:timers/promises';
import { getOverview } from '@muster/protocol/http';
import { AgentFleet } from './load/agent-fleet.ts';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { table } from './run/report.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';

/**
 * Kills and restarts the orchestrator several times in a row, and measures how long agents take to reconnect, and the
 * maximum API latency in that time. The agents run the real connection code in separate processes on the same machine,
 * and back off as in production.
 *
 *     node bench/src/return.ts [--agents 10000] [--restarts 4] [--up 5] [--at-once 256] [--json]
 */
const options = benchOptions({
  numbers: { agents: [10_000, 4], restarts: [4, 2], up: [5, 0.2], 'at-once': [256, 4] },
});
const { agents, restarts, up: upSecs, 'at-once': atOnce } = options;
const lookMs = 100;

const orchestrator = await OrchestratorProcess.start();
const fleet = new AgentFleet(agents);
await fleet.enroll(orchestrator, atOnce);
const before = await connected();
printProgress(`${before} agents connected`);
for (let i = 0; i < restarts; i++) {
  await orchestrator.restart();
  printProgress(`restart ${i + 1} of ${restarts}`);
  if (i < restarts - 1) await sleep(upSecs * 1000);
}
const began = performance.now();
const shares: [share: number, secs: number | null][] = [0.5, 0.9, 0.99, 1].map((share) => [share, null]);
let slowestMs = 0;
for (let count = 0; count < before; ) {
  const requestedAt = performance.now();
  count = await connected();
  const now = performance.now();
  slowestMs = Math.max(slowestMs, now - requestedAt);
  for (const each of shares)
    if (each[1] === null && count >= Math.ceil(before * each[0])) {
      each[1] = (now - began) / 1000;
      printProgress(`${each[0] * 100} % of the agents connected`);
    }
  await sleep(lookMs);
}
await fleet.stop();
await orchestrator.stop();

const rows = shares.map(([share, secs]) => [`${share * 100} % of the agents connected`, secs]);
process.stdout.write(
  `${table(['time after the last restart', 's'], [...rows, ['slowest response to GET /overview', slowestMs / 1000]])}\n`,
);
process.exitCode = conclude('return', {
  sizes: `${agents} agents, ${restarts} restarts`,
  figures: { all: shares.at(-1)![1]! },
});

async function connected(): Promise<number> {
  return (await orchestrator.call(getOverview, {})).agents.connected;
}
