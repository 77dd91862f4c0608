import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { beforeEach, expect, test } from 'vitest';
import { providerOf } from '../../resources/provider/registry.ts';
import type { ContractAgent } from './contract-agent.ts';
import type { JournalStep } from './cut.ts';
import { operation } from './desired.ts';
import { sampled } from './sampled.ts';

/** What every provider must hold to, whatever it manages and wherever that is. */

/** Of a kill loop in `npm test`. */
const mostSteps = 4;

/** One resource on a machine, and an agent that knows nothing yet. */
export interface Ground {
  agent: ContractAgent;
  desired: ResolvedResource;
  /** The same resource, declared differently. */
  changed: ResolvedResource;
  /** Everything a resource could have changed. */
  snapshot(): Promise<Readonly<Record<string, string>>>;
  /** Somebody changes it by hand. */
  tamper(): Promise<void>;
}

interface ContractOptions {
  /** The fields that a drift check must name after `tamper`, and no other. */
  moved: readonly string[];
  /** Brings the ground about, for each test. */
  begin(): Promise<Ground>;
  /** Which steps of the journal the agent is killed at; all when absent. */
  deadly?: (point: string) => boolean;
  /** So many of them there must at least be. */
  steps: number;
}

const essence = (results: ResourceResult[]) =>
  results.map(({ identity, action, changes, diff, triggered_by }) => ({
    identity,
    action,
    changes,
    diff,
    triggered_by,
  }));

/** Plans, makes sure that nothing moved, applies, and holds the apply to the plan. */
export async function planAndApplyOn(
  { agent, snapshot }: Pick<Ground, 'agent' | 'snapshot'>,
  resources: ResolvedResource[],
): Promise<ResourceResult[]> {
  const before = await snapshot();
  const planned = await agent.run(operation('plan', resources));
  expect(await snapshot()).toEqual(before);
  const applied = await agent.run(operation('apply', resources));
  expect(applied.finished.status, failuresOf(applied.results)).toBe('succeeded');
  expect(essence(applied.results)).toEqual(essence(planned.results));
  return applied.results;
}

/** The tests of one subject; to be called inside its `describe`. */
export function providerContract({ moved, begin, deadly = () => true, steps }: ContractOptions): void {
  let ground: Ground;
  beforeEach(async () => {
    ground = await begin();
  });

  const plan = (resources: ResolvedResource[]) => ground.agent.run(operation('plan', resources));
  const apply = (resources: ResolvedResource[]) => ground.agent.run(operation('apply', resources));

  const planAndApply = (resources: ResolvedResource[]) => planAndApplyOn(ground, resources);

  test('is provided', () => {
    expect(providerOf(ground.desired.type)?.type).toBe(ground.desired.type);
  });

  test('a plan changes nothing and is what the apply does; the second apply does nothing', async () => {
    for (const wanted of [ground.desired, ground.changed, ground.desired]) {
      const results = await planAndApply([wanted]);
      expect(results.map(({ status, corrective }) => ({ status, corrective }))).toEqual([
        { status: 'changed', corrective: false },
      ]);
      const there = await ground.snapshot();
      const again = await apply([wanted]);
      expect(again.results).toMatchObject([{ action: 'none', status: 'unchanged', changes: [] }]);
      expect(await ground.snapshot()).toEqual(there);
    }
    await apply([]);
  });

  test('drift names exactly what moved, changes nothing, and the next apply repairs it', async () => {
    await apply([ground.desired]);
    const right = await ground.snapshot();
    expect((await ground.agent.run(operation('drift'))).results).toEqual([]);
    await ground.tamper();
    const tampered = await ground.snapshot();
    const drift = await ground.agent.run(operation('drift'));
    expect(drift.results.map(({ changes }) => changes.map(({ field }) => field))).toEqual([moved]);
    expect(await ground.snapshot()).toEqual(tampered);
    const repaired = await planAndApply([ground.desired]);
    expect(repaired).toMatchObject([{ status: 'changed', corrective: true }]);
    expect(await ground.snapshot()).toEqual(right);
    await apply([]);
  });

  test('removal brings back what was there, also after changes and tampering', async () => {
    const before = await ground.snapshot();
    await apply([ground.desired]);
    await planAndApply([]);
    expect(await ground.snapshot()).toEqual(before);
    await apply([ground.desired]);
    await apply([ground.changed]);
    await planAndApply([]);
    expect(await ground.snapshot()).toEqual(before);
    await apply([ground.desired]);
    await ground.tamper();
    await planAndApply([]);
    expect(await ground.snapshot()).toEqual(before);
    expect((await plan([])).results).toEqual([]);
  });

  /** The steps that the agent is to be killed at. */
  async function deadlySteps(resources: ResolvedResource[]): Promise<JournalStep[]> {
    const { points } = await ground.agent.killedAt(operation('apply', resources), 0);
    const found = points.flatMap((point, i): JournalStep[] => {
      const nth = points.slice(0, i + 1).filter((other) => other === point).length;
      return deadly(point) ? [{ point, nth }] : [];
    });
    expect(found.length, points.join(', ')).toBeGreaterThanOrEqual(steps);
    return sampled(found, mostSteps);
  }

  test('cut off at any step, it is old or new, ends once, and is removed as if nothing had happened', async () => {
    const before = await ground.snapshot();
    const found = await deadlySteps([ground.desired]);
    await apply([]);
    for (const at of found) {
      const name = at.point;
      await ground.agent.forget();
      const { told } = await ground.agent.killedAt(operation('apply', [ground.desired]), at);
      expect(told.results, name).toMatchObject([{ status: 'changed' }]);
      expect(told.finished, name).toMatchObject({ status: 'succeeded', summary: { total: 1 } });
      expect((await apply([ground.desired])).results, name).toMatchObject([{ status: 'unchanged' }]);
      await apply([]);
      expect(await ground.snapshot(), name).toEqual(before);
    }
  });

  test('a removal that is cut off at any step is carried to its end by the next agent', async () => {
    const before = await ground.snapshot();
    await apply([ground.desired]);
    for (const at of await deadlySteps([])) {
      const name = at.point;
      await ground.agent.forget();
      await apply([ground.desired]);
      const { told } = await ground.agent.killedAt(operation('apply', []), at);
      expect(told.finished, `${name}: ${failuresOf(told.results)}`).toMatchObject({ status: 'succeeded' });
      expect(await ground.snapshot(), name).toEqual(before);
      expect((await plan([])).results, name).toEqual([]);
    }
  });

  test('what is as declared when the agent comes is left when it goes', async () => {
    await apply([ground.desired]);
    await ground.agent.forget();
    const there = await ground.snapshot();
    expect(await planAndApply([ground.desired])).toMatchObject([{ status: 'unchanged' }]);
    expect(await planAndApply([])).toMatchObject([{ action: 'none', status: 'unchanged' }]);
    expect(await ground.snapshot()).toEqual(there);
  });
}

const failuresOf = (results: ResourceResult[]): string =>
  results
    .filter(({ status }) => status === 'failed')
    .map(({ identity, message }) => `${identity}: ${message}`)
    .join('\n');
