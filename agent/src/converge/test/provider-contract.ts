import type { ResourceResult } from '@muster/protocol';
import { kinds, type ResolvedResource } from '@muster/protocol/module';
import { beforeEach, expect, test } from 'vitest';
import { sampled } from '../../../../lib/test/sampled.ts';
import { providerOf } from '../../resources/registry.ts';
import type { ContractAgent } from './contract-agent.ts';
import type { JournalStep } from './cut.ts';
import { operation } from './desired.ts';

/** The tests that every provider must pass, on any machine. */

/** A resource to test on a machine whose agent has no data. */
export interface Ground {
  agent: ContractAgent;
  desired: ResolvedResource;
  /** The same resource with a different declaration. Absent if only the identity can differ. */
  changed?: ResolvedResource;
  /** Returns everything that the resource may have changed on the machine. */
  snapshot(): Promise<Readonly<Record<string, string>>>;
  /** Changes the resource by hand. */
  tamper(): Promise<void>;
}

interface Kills {
  /** Reports whether to kill the agent at a step. By default, it is killed at every step. */
  deadly?: (point: string) => boolean;
  /** Minimum number of steps at which to kill the agent. */
  steps: number;
  /** Number of these steps that `npm test` samples; default: 2. */
  sample?: number;
}

interface ContractOptions extends Kills {
  /** Exactly the fields that a drift check must report after `tamper`. */
  moved: readonly string[];
  /** Sets up the machine before each test. */
  begin(): Promise<Ground>;
}

const essence = (results: ResourceResult[]) =>
  results.map(({ identity, action, changes, diff, triggered_by }) => ({
    identity,
    action,
    changes,
    diff,
    triggered_by,
  }));

/** Plans, checks that the plan changed nothing, applies, and compares the apply with the plan. */
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

/** Defines the tests for one subject. Call this inside a `describe`. */
export function providerContract({ begin, moved, ...kills }: ContractOptions): void {
  let ground: Ground;
  beforeEach(async () => {
    ground = await begin();
  });

  test('the kind has a provider', () => {
    expect(providerOf(ground.desired.type)?.type).toBe(ground.desired.type);
  });
  test('plans without changes, applies exactly the plan, and changes nothing on the second apply', () =>
    expectIdempotence(ground));
  test('reports exactly the drifted fields, and repairs them with the next apply', () =>
    expectDriftRepaired(ground, moved));
  test('restores the original state on removal, even after changes and drift, and shows no secret', () =>
    expectRestored(ground));
  test('finishes an apply exactly once if the agent is killed at any step, and removes it completely', () =>
    expectApplySurvivesKills(ground, kills));
  test('finishes a removal that is killed at any step', () => expectRemovalSurvivesKills(ground, kills));
  test('leaves a resource unchanged on removal if it was already as declared', () => expectUntouched(ground));
}

const apply = ({ agent }: Ground, resources: ResolvedResource[]) => agent.run(operation('apply', resources));
const plan = ({ agent }: Ground, resources: ResolvedResource[]) => agent.run(operation('plan', resources));

async function expectIdempotence(ground: Ground): Promise<void> {
  const { desired, changed } = ground;
  for (const declared of changed === undefined ? [desired] : [desired, changed, desired]) {
    const results = await planAndApplyOn(ground, [declared]);
    expect(results.map(({ status, corrective }) => ({ status, corrective }))).toEqual([
      { status: 'changed', corrective: false },
    ]);
    const current = await ground.snapshot();
    const again = await apply(ground, [declared]);
    expect(again.results).toMatchObject([{ action: 'none', status: 'unchanged', changes: [] }]);
    expect(await ground.snapshot()).toEqual(current);
  }
  await apply(ground, []);
}

async function expectDriftRepaired(ground: Ground, moved: ContractOptions['moved']): Promise<void> {
  await apply(ground, [ground.desired]);
  const declaredState = await ground.snapshot();
  expect((await ground.agent.run(operation('drift'))).results).toEqual([]);
  await ground.tamper();
  const tampered = await ground.snapshot();
  const drift = await ground.agent.run(operation('drift'));
  expect(drift.results.map(({ changes }) => changes.map(({ field }) => field))).toEqual([moved]);
  expect(await ground.snapshot()).toEqual(tampered);
  const repaired = await planAndApplyOn(ground, [ground.desired]);
  expect(repaired).toMatchObject([{ status: 'changed', corrective: true }]);
  expect(await ground.snapshot()).toEqual(declaredState);
  await apply(ground, []);
}

async function expectRestored(ground: Ground): Promise<void> {
  const before = await ground.snapshot();
  const desired = withSecrets(ground.desired);
  const changed = withSecrets(ground.changed ?? ground.desired);
  const reported: unknown[] = [await apply(ground, [desired])];
  reported.push(await planAndApplyOn(ground, []));
  expect(await ground.snapshot()).toEqual(before);
  reported.push(await apply(ground, [desired]));
  reported.push(await apply(ground, [changed]));
  reported.push(await planAndApplyOn(ground, []));
  expect(await ground.snapshot()).toEqual(before);
  await apply(ground, [desired]);
  await ground.tamper();
  reported.push(await ground.agent.run(operation('drift')));
  reported.push(await planAndApplyOn(ground, []));
  expect(await ground.snapshot()).toEqual(before);
  expect((await plan(ground, [])).results).toEqual([]);
  const shown = JSON.stringify(reported);
  for (const text of [...secretsOf(desired, changed), ...secretsOf(changed)])
    expect(shown.includes(JSON.stringify(text).slice(1, -1)), text).toBe(false);
}

/** Returns the fields of a resource in which a module may use secrets. */
function secretFields({ type, body }: ResolvedResource): string[] {
  const { required, optional } = kinds[type];
  return Object.keys(body).filter((name) => ({ ...required, ...optional })[name]?.secrets === true);
}

/** Marks each field in which a module may use secrets as containing a secret. */
const withSecrets = (resource: ResolvedResource): ResolvedResource => ({
  ...resource,
  sensitive_fields: secretFields(resource),
});

/** Minimum length of a text that does not occur in reports by chance. */
const minSecret = 5;

/**
 * Returns the lines of the fields that are marked as secrets, except those that public fields also have.
 * @param next the following declaration: a field that it does not declare may keep its value, but is then not a secret
 */
function secretsOf(resource: ResolvedResource, next = resource): string[] {
  const { body, identity, type, sensitive_fields } = resource;
  const fields = Object.entries(body);
  const open = JSON.stringify([identity, type, ...fields.filter(([name]) => !sensitive_fields.includes(name))]);
  const hidden = fields.filter(([name]) => sensitive_fields.includes(name) && Object.hasOwn(next.body, name));
  return textsIn(hidden.map(([, value]) => value))
    .flatMap((text) => text.split('\n'))
    .filter((line) => line.length >= minSecret && !open.includes(JSON.stringify(line).slice(1, -1)));
}

const textsIn = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(textsIn)
      : [];

/** Returns a sample of the steps at which to kill the agent. */
async function deadlySteps(
  { agent }: Ground,
  { deadly = () => true, steps, sample = 2 }: Kills,
  resources: ResolvedResource[],
): Promise<JournalStep[]> {
  const { points } = await agent.killedAt(operation('apply', resources), 0);
  const found = points.flatMap((point, i): JournalStep[] => {
    const nth = points.slice(0, i + 1).filter((other) => other === point).length;
    return deadly(point) ? [{ point, nth }] : [];
  });
  expect(found.length, points.join(', ')).toBeGreaterThanOrEqual(steps);
  return sampled(found, sample);
}

async function expectApplySurvivesKills(ground: Ground, kills: Kills): Promise<void> {
  const before = await ground.snapshot();
  const found = await deadlySteps(ground, kills, [ground.desired]);
  await apply(ground, []);
  for (const at of found) {
    const name = at.point;
    await ground.agent.forget();
    const { reported } = await ground.agent.killedAt(operation('apply', [ground.desired]), at);
    expect(reported.results, name).toMatchObject([{ status: 'changed' }]);
    expect(reported.finished, name).toMatchObject({ status: 'succeeded', summary: { total: 1 } });
    expect((await apply(ground, [ground.desired])).results, name).toMatchObject([{ status: 'unchanged' }]);
    await apply(ground, []);
    expect(await ground.snapshot(), name).toEqual(before);
  }
}

async function expectRemovalSurvivesKills(ground: Ground, kills: Kills): Promise<void> {
  const before = await ground.snapshot();
  await apply(ground, [ground.desired]);
  for (const at of await deadlySteps(ground, kills, [])) {
    const name = at.point;
    await ground.agent.forget();
    await apply(ground, [ground.desired]);
    const { reported } = await ground.agent.killedAt(operation('apply', []), at);
    expect(reported.finished, `${name}: ${failuresOf(reported.results)}`).toMatchObject({ status: 'succeeded' });
    expect(await ground.snapshot(), name).toEqual(before);
    expect((await plan(ground, [])).results, name).toEqual([]);
  }
}

async function expectUntouched(ground: Ground): Promise<void> {
  await apply(ground, [ground.desired]);
  await ground.agent.forget();
  const current = await ground.snapshot();
  expect(await planAndApplyOn(ground, [ground.desired])).toMatchObject([{ status: 'unchanged' }]);
  expect(await planAndApplyOn(ground, [])).toMatchObject([{ action: 'none', status: 'unchanged' }]);
  expect(await ground.snapshot()).toEqual(current);
}

const failuresOf = (results: ResourceResult[]): string =>
  results
    .filter(({ status }) => status === 'failed')
    .map(({ identity, message }) => `${identity}: ${message}`)
    .join('\n');
