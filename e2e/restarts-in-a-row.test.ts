import { listAgents } from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';

/** Returns the backoff times in an agent's log lines, in milliseconds. */
const waitsIn = (lines: readonly string[]): number[] =>
  lines.flatMap((line) => {
    const wait = /"retry_in_ms":(\d+)/.exec(line)?.[1];
    return wait === undefined ? [] : [Number(wait)];
  });

test('agents wait at most five seconds before they reconnect after several kills and stops of the orchestrator', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  const agents = [];
  for (const name of ['web-1', 'web-2', 'web-3']) agents.push(await stage.agent(orchestrator, name));
  const restarts = ['kill', 'stop', 'kill', 'kill', 'stop', 'kill', 'kill', 'kill'];
  for (const how of restarts) {
    if (how === 'kill') await orchestrator.kill9();
    else await orchestrator.stop();
    await orchestrator.start();
  }
  await eventually('all agents are connected', async () => {
    const known = await orchestrator.call(listAgents, {});
    return known.length === 3 && known.every(({ connected }) => connected) ? true : null;
  });
  for (const { program } of agents) {
    const lines = program.lastLines(1_000);
    const waits = waitsIn(lines);
    expect(waits.length).toBeGreaterThan(0);
    // Compares the logged backoff times, because elapsed time depends on this machine's load.
    expect(Math.max(...waits), lines.join('\n')).toBeLessThanOrEqual(5_000);
    for (const line of lines.filter((each) => each.includes('"not connected"')))
      expect(line).toMatch(/"reason":"[^"]+"/);
  }
});
