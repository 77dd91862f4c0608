import type { ResourceResult } from '@muster/protocol';
import type { OperationMessage, Report } from '@muster/protocol/wire';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DatabaseFixture, describeAnyDatabase } from '../../../test/databases/databases.ts';
import { type Key, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { getState } from '../../../test/reading.ts';
import { createAgentLinks } from '../agent-link/agent-link-service.ts';
import { createOffRanking } from '../drift/off-ranking.ts';
import { listReconcile } from '../drift/reconcile.ts';
import { createAssignment, removeAssignment } from '../modules/assignments.ts';
import { uploadModule } from '../modules/modules.ts';
import { submitOperation } from './operations.ts';

const instance = '01'.repeat(16);
const file = (path: string) => `  - resource: { file-unix: { path: ${path}, content: "x" } }\n`;
const script = (name: string) => `  - id: ${name}\n    resource: { script: { program: sh, apply: "true" } }\n`;
/** `a` and `b` share a file. `d` declares its path as a directory. */
const modules: Readonly<Record<string, string>> = {
  a: file('/a') + file('/shared') + script('once-a'),
  b: file('/b') + file('/shared'),
  c: file('/c') + script('once-c'),
  d: '  - resource: { directory-unix: { path: /shared } }\n',
};

async function open(fixture: DatabaseFixture) {
  const domain = await openDomain(fixture);
  const { context } = domain;
  const { actor } = await newAdmin(domain);
  for (const [name, resources] of Object.entries(modules))
    await uploadModule(
      context,
      actor,
      name,
      `name: ${name}\nsupports: [{ platform: linux }]\nresources:\n${resources}`,
    );
  let seq = 0;
  const report = (agent: Key, reports: Report[], links = domain.links) =>
    links.reported(agent.id, instance, ++seq, reports);
  const submit = async (agent: Key, names: readonly string[]): Promise<OperationMessage> => {
    const request = { kind: 'apply', modules: names, queue: true } as const;
    const id = await submitOperation(context, actor, agent.id, request);
    const next = await domain.links.nextOperation(agent.id);
    expect(next?.operation.operation_id).toBe(id);
    return next?.operation as OperationMessage;
  };
  return { domain, context, actor, report, submit };
}

const resultFor = (
  { module, id, type, identity }: { module: string; id: string | null; type: string; identity: string },
  more: Partial<ResourceResult>,
) => resultOf({ module, id, type, identity, ...more });
const well = { action: 'create', status: 'changed' } as const;
const skipped = { action: 'none', status: 'skipped', message: 'cancelled' } as const;

describeAnyDatabase('applied state', (fixture) => {
  test('drops a script without undo from applied state when no module declares it', async () => {
    const { context, actor, domain, report, submit } = await open(fixture);
    const agent = await newAgent(domain, actor, 'web-1');
    const first = await submit(agent, ['a', 'b']);
    await report(
      agent,
      reportsOf(
        first.operation_id,
        first.resources.map((r) => resultFor(r, well)),
        { now: 1 },
      ),
    );
    const second = await submit(agent, ['b']);
    const removed = first.resources
      .filter(({ module }) => module === 'a')
      .filter(({ identity }) => identity !== '/shared');
    const results = [
      ...second.resources.map((r) => resultFor(r, { action: 'none', status: 'unchanged' })),
      ...removed.map((r) =>
        resultFor(
          r,
          r.type === 'script' ? { action: 'none', status: 'unchanged' } : { action: 'remove', status: 'changed' },
        ),
      ),
    ];
    await report(agent, reportsOf(second.operation_id, results, { now: 2 }));
    const state = await getState(context, agent.id);
    expect(state.applied.map(({ identity }) => identity)).toEqual(['/b', '/shared']);
    expect(state).toMatchObject({ pending_removals: [], unapplied: [] });
  });

  test('drops a resource that a canceled apply skipped, once an apply without the resource ends', async () => {
    const { context, actor, domain, report, submit } = await open(fixture);
    const agent = await newAgent(domain, actor, 'web-1');
    const first = await submit(agent, ['a', 'b']);
    const cancelled = first.resources.map((r) => resultFor(r, skipped));
    await report(agent, reportsOf(first.operation_id, cancelled, { now: 1, status: 'cancelled' }));
    const off = async () => (await listReconcile(context, { limit: 9, offset: 0 }, createOffRanking(context))).items;
    expect(await off()).toMatchObject([{ reasons: ['unapplied'], unapplied: first.resources.length }]);
    for (const status of ['changed', 'unchanged'] as const) {
      const next = await submit(agent, ['b']);
      const results = next.resources.map((r) => resultFor(r, { action: 'none', status }));
      await report(agent, reportsOf(next.operation_id, results, { now: 2 }));
      expect(await off()).toEqual([]);
      expect((await getState(context, agent.id)).unapplied).toEqual([]);
    }
  });

  test('ignores reported resources that were not in any operation', async () => {
    const { context, actor, domain, report, submit } = await open(fixture);
    const agent = await newAgent(domain, actor, 'web-1');
    const made = Array.from({ length: 50 }, (_, i) =>
      resultOf({
        identity: `/invented/${i}`,
        action: i % 2 === 0 ? 'create' : 'remove',
        status: i % 3 === 0 ? 'failed' : 'changed',
      }),
    );
    const { operation_id, resources } = await submit(agent, ['c']);
    await report(agent, reportsOf(operation_id, made, { now: 1, status: 'failed' }));
    const { applied, pending_removals, unapplied } = await getState(context, agent.id);
    const identities = [...applied, ...pending_removals, ...unapplied].map(({ identity }) => identity);
    expect(identities.sort()).toEqual(resources.map(({ identity }) => identity).sort());
  });

  test('shortens long reasons', async () => {
    const { context, actor, domain, report, submit } = await open(fixture);
    const agent = await newAgent(domain, actor, 'web-1');
    const { operation_id, resources } = await submit(agent, ['c']);
    const failed = resources.map((r) => resultFor(r, { status: 'failed', message: 'x'.repeat(8000) }));
    await report(agent, reportsOf(operation_id, failed, { now: 1, status: 'failed' }));
    for (const { reason } of (await getState(context, agent.id)).unapplied) expect(reason).toHaveLength(1000);
  });

  test('keeps applied state equal to the agent’s record after any sequence of applies', async () => {
    const { domain, context, actor, report, submit } = await open(fixture);
    let agents = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 10 }), async (steps) => {
        const agent = await newAgent(domain, actor, `m-${++agents}`);
        const model = new Model();
        const audited = new Set<string>();
        let links = domain.links;
        try {
          for (const { names, audits, fates, end, pieces, restart, before } of steps) {
            if (before === 'lost data') model.loseRecord();
            for (const name of Object.keys(modules)) {
              if (audits.includes(name) === audited.has(name)) continue;
              if (audited.has(name)) await removeAssignment(context, actor, name);
              else {
                const selector = 'attr.platform=linux';
                await createAssignment(context, actor, { name, modules: [name], selector, mode: 'audit' });
              }
              audited.has(name) ? audited.delete(name) : audited.add(name);
            }
            if (restart)
              links = createAgentLinks(
                context,
                domain.refusals,
                domain.pending,
                async () => {},
                domain.liveOutput,
                domain.rules,
              );
            const message = await submit(agent, names);
            expect(message.keep_modules.toSorted()).toEqual(audits.filter((name) => !names.includes(name)));
            const { results, status } = model.apply(message, fates, end);
            const [accepted, ...reports] = reportsOf(message.operation_id, [], { now: 1, status });
            const finished = { ...(reports.at(-1) as Report & { type: 'finished' }) };
            finished.summary = { ...finished.summary, total: results.length };
            const all: Report[] = [accepted as Report];
            const size = pieces ? 2 : 256;
            for (let position = 0; position < results.length; position += size)
              all.push({
                type: 'results',
                operation_id: message.operation_id,
                position,
                results: results.slice(position, position + size),
              });
            all.push(finished);
            for (const part of pieces ? all.map((one) => [one]) : [all]) await report(agent, part, links);
            model.compare(await getState(context, agent.id));
          }
        } finally {
          for (const name of audited) await removeAssignment(context, actor, name);
        }
      }),
      { numRuns: 25 },
    );
  });
});

interface Step {
  names: string[];
  /** Modules of audit assignments. Their resources are kept unless the modules are requested. */
  audits: string[];
  /** Resource statuses, repeated as often as needed. */
  fates: Fate[];
  /** How the apply ends: completely, canceled after some resources, or aborted by the agent after some. */
  end: { how: 'whole' | 'cancelled' | 'given up'; after: number };
  /** Whether results are reported one by one. */
  pieces: boolean;
  /** Whether the orchestrator restarts. */
  restart: boolean;
  before: 'nothing' | 'lost data';
}
type Fate = 'well' | 'fails' | 'fails half way';

const step: fc.Arbitrary<Step> = fc.record({
  // Module `d` declares the same path differently, so no other module is used with it.
  names: fc.oneof({ arbitrary: fc.subarray(['a', 'b', 'c']), weight: 4 }, fc.constantFrom<string[]>(['d'], ['c', 'd'])),
  audits: fc.subarray(Object.keys(modules)),
  fates: fc.array(fc.constantFrom<Fate>('well', 'well', 'well', 'fails', 'fails half way'), {
    minLength: 1,
    maxLength: 7,
  }),
  end: fc.record({
    how: fc.constantFrom(
      'whole' as const,
      'whole' as const,
      'whole' as const,
      'cancelled' as const,
      'given up' as const,
    ),
    after: fc.nat(6),
  }),
  pieces: fc.boolean(),
  restart: fc.boolean(),
  before: fc.constantFrom('nothing', 'nothing', 'nothing', 'nothing', 'lost data'),
});

interface Recorded {
  resource: OperationMessage['resources'][number];
  /** Whether the resource was applied successfully. */
  isInPlace: boolean;
}

/** A model of the agent's engine and the expected applied state. */
class Model {
  /** The agent's record of managed resources. */
  #record = new Map<string, Recorded>();
  /** Expected applied state by key. */
  #rows = new Map<string, { state: 'applied' | 'pending_removal' | 'unapplied'; identity: string }>();
  /**
   * Whether the agent lost its record and no apply without kept modules has succeeded since. Applied state may then
   * contain additional resources.
   */
  #isLost = false;
  readonly #sent = new Set<string>();

  loseRecord(): void {
    this.#record.clear();
    this.#isLost = true;
  }

  apply(
    { resources, keep_modules }: OperationMessage,
    fates: readonly Fate[],
    end: Step['end'],
  ): { results: ResourceResult[]; status: 'succeeded' | 'failed' | 'cancelled' } {
    const declared = new Set(resources.map(({ key }) => key));
    for (const { identity } of resources) this.#sent.add(identity);
    const removals = [...this.#record.values()].filter(
      ({ resource }) => !declared.has(resource.key) && !keep_modules.includes(resource.module),
    );
    const total = resources.length + removals.length;
    const stopsAt = end.how === 'whole' ? total : Math.min(total, end.after);
    const results: ResourceResult[] = [];
    const rows = new Map(this.#rows);
    const isGivenUp = end.how === 'given up' && stopsAt < total;
    resources.forEach((resource, i) => {
      if (i >= stopsAt && isGivenUp) return;
      const recorded = this.#record.get(resource.key);
      const isOtherKind = recorded !== undefined && recorded.resource.type !== resource.type;
      const fate = i >= stopsAt ? 'skipped' : isOtherKind ? 'fails' : (fates[i % fates.length] as Fate);
      if (fate === 'well') {
        const action = recorded?.isInPlace ? ('none' as const) : ('create' as const);
        results.push(resultFor(resource, { action, status: action === 'none' ? 'unchanged' : 'changed' }));
        this.#record.set(resource.key, { resource, isInPlace: true });
      } else if (fate === 'skipped') results.push(resultFor(resource, skipped));
      else {
        results.push(resultFor(resource, { action: 'update', status: 'failed', message: fate }));
        if (!isOtherKind && (recorded !== undefined || fate === 'fails half way'))
          this.#record.set(resource.key, { resource, isInPlace: recorded?.isInPlace ?? false });
      }
      rows.set(resource.key, { state: fate === 'well' ? 'applied' : 'unapplied', identity: resource.identity });
    });
    removals.forEach(({ resource }, i) => {
      const position = resources.length + i;
      if (position >= stopsAt && isGivenUp) return;
      const { key, identity } = resource;
      const fate = position >= stopsAt ? 'skipped' : (fates[position % fates.length] as Fate);
      if (fate === 'well') {
        const isForgotten = resource.type === 'script';
        results.push(
          resultFor(
            resource,
            isForgotten ? { action: 'none', status: 'unchanged' } : { action: 'remove', status: 'changed' },
          ),
        );
        this.#record.delete(key);
        rows.delete(key);
        return;
      }
      results.push(
        resultFor(resource, fate === 'skipped' ? skipped : { action: 'remove', status: 'failed', message: fate }),
      );
      if (rows.has(key)) rows.set(key, { state: 'pending_removal', identity });
    });
    const pending = new Set(
      removals
        .slice(0, isGivenUp ? Math.max(0, stopsAt - resources.length) : total)
        .map(({ resource }) => resource.key),
    );
    if (!isGivenUp || (stopsAt >= resources.length && results.length > 0))
      for (const [key] of rows) {
        if (declared.has(key) || pending.has(key)) continue;
        const recorded = this.#record.get(key);
        const isKept = recorded !== undefined && keep_modules.includes(recorded.resource.module);
        if (isKept && recorded.isInPlace) rows.set(key, { state: 'applied', identity: recorded.resource.identity });
        else if (!recorded?.isInPlace) rows.delete(key);
      }
    this.#rows = rows;
    const failed = results.some(({ status }) => status === 'failed');
    const status = isGivenUp ? 'failed' : stopsAt < total ? 'cancelled' : failed ? 'failed' : 'succeeded';
    if (status === 'succeeded' && keep_modules.length === 0) this.#isLost = false;
    return { results, status };
  }

  compare(state: Awaited<ReturnType<typeof getState>>): void {
    const { applied, pending_removals, unapplied } = state;
    const reported = { applied, pending_removal: pending_removals, unapplied };
    const found = Object.entries(reported).flatMap(([name, entries]) =>
      entries.map(({ identity }) => `${name} ${identity}`),
    );
    if (this.#isLost) {
      for (const one of found) expect(this.#sent).toContain(one.slice(one.indexOf(' ') + 1));
      this.#rows = new Map(
        [...this.#rows].filter(([, { identity }]) => found.some((one) => one.endsWith(` ${identity}`))),
      );
      return;
    }
    expect(found.sort()).toEqual([...this.#rows.values()].map((row) => `${row.state} ${row.identity}`).sort());
    // Applied state contains every resource that is on the machine.
    for (const [key, { isInPlace }] of this.#record) if (isInPlace) expect(this.#rows.has(key)).toBe(true);
  }
}
