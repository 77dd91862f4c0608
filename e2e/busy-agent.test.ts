import { existsSync, readdirSync } from 'node:fs';
import { applyAgent, planAgent, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { test } from './harness.ts';

/** Tests a real agent with thousands of small resources, whose link transfers results without a pause. */

const modules = 4;
const filesEach = 600;
/**
 * Number of operations. With MUSTER_EVERY_STEP, which `npm run soak -- kill-steps` sets, they produce more than 37,000
 * results, because an earlier bug reset links after that number.
 */
const rounds = process.env.MUSTER_EVERY_STEP === undefined ? 3 : 16;

describe('a real agent with thousands of resources', () => {
  test('an agent that reports at the maximum rate loses neither its link nor a result', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'busy');
    const root = stage.folder('many');
    const names = Array.from({ length: modules }, (_, i) => `many-${i}`);
    const upload = (round: number) =>
      Promise.all(
        names.map((name, i) => {
          const resources = Array.from({ length: filesEach }, (_, j) => ({
            id: `f${j}`,
            resource: { 'file-unix': { path: `${root}/${i}-${j}`, content: `${j % 3 === round % 3 ? round : 0}\n` } },
          }));
          // The script's output shares the link with the results.
          const script = {
            program: 'sh',
            manages: `noise-${name}`,
            apply: `head -c 200000 /dev/zero | tr '\\0' x; : ${name} ${round}`,
          };
          resources.push({ id: 'noise', resource: { script } } as never);
          const content = JSON.stringify({ name, supports: [{ platform: 'linux' }], resources });
          return orchestrator.call(uploadModule, { body: { name, content } });
        }),
      );
    const params = { node_id: agent.nodeId };
    const count = modules * (filesEach + 1);
    let reported = 0;
    for (let round = 0; round < rounds; round++) {
      await upload(round);
      const call = round % 3 === 2 ? planAgent : applyAgent;
      const { status, error, resources, summary } = await orchestrator.call(call, { params, body: { modules: names } });
      expect([status, error]).toEqual(['succeeded', null]);
      expect(summary.total).toBe(count);
      expect(resources.length).toBe(count);
      expect(new Set(resources.map(({ module, id }) => `${module}/${id}`)).size).toBe(count);
      expect(resources.filter(({ status }) => status === 'failed' || status === 'skipped')).toEqual([]);
      reported += resources.length;
    }
    expect(reported).toBe(rounds * count);
    expect(existsSync(`${root}/0-0`) && readdirSync(root).length).toBe(modules * filesEach);
    // Only one line, because the agent never reconnected.
    const said = [...agent.program.lastLines(20_000), ...orchestrator.program.lastLines(20_000)];
    expect(said.filter((line) => /"event":"connected"/.test(line)).length).toBe(1);
    expect(said.filter((line) => /not connected|disconnected|protocol_violation|ECONNRESET|reset/.test(line))).toEqual(
      [],
    );
  });
});
