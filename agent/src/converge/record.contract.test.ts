import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Reported, removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './test/agent.ts';
import { cutOff } from './test/cut.ts';
import { file, operation, script } from './test/desired.ts';

/**
 * Compares the agent's record of managed resources with a model that is built from its reports. The record must contain
 * exactly the resources that an apply put in place or may have begun to put in place. A plan without desired resources
 * shows the record, because it would remove everything.
 */

/** `shared` moves between modules. The other names describe how the test uses the resource. */
const resources: Readonly<Record<string, (root: string, module: string) => ResolvedResource>> = {
  file: (root, module) => file(`${root}/file`, { content: 'x' }, { module }),
  shared: (root, module) => file(`${root}/shared`, { content: 'x' }, { module }),
  'in the way': (root, module) => file(`${root}/way/x`, { content: 'x' }, { module }),
  'no undo': (_, module) => script('no-undo', { apply: 'true' }, { module }),
  'undo fails': (root, module) =>
    script('undo-fails', { apply: 'true', undo: `test ! -e ${root}.out/stuck` }, { module }),
  'apply fails': (root, module) =>
    script('apply-fails', { apply: `test ! -e ${root}.out/broken`, undo: 'true' }, { module }),
};
const modules: Readonly<Record<string, readonly string[]>> = {
  a: ['file', 'shared', 'no undo'],
  b: ['shared', 'undo fails'],
  c: ['in the way', 'apply fails'],
};

interface Step {
  modules: string[];
  keep: string[];
  hands: string[];
  how: 'whole' | 'killed' | 'cancelled';
  at: number;
  before: 'nothing' | 'lost' | 'saved' | 'restored';
}
const step: fc.Arbitrary<Step> = fc.record({
  modules: fc.subarray(Object.keys(modules)),
  keep: fc.subarray(Object.keys(modules)),
  hands: fc.subarray(['stuck', 'broken', 'way']),
  how: fc.constantFrom('whole', 'whole', 'killed', 'cancelled'),
  at: fc.integer({ min: 1, max: 14 }),
  before: fc.constantFrom('nothing', 'nothing', 'nothing', 'nothing', 'lost', 'saved', 'restored'),
});

class Machine {
  readonly home = temporaryDirectory();
  readonly root = `${this.home}/root`;
  readonly data = `${this.home}/data`;
  agent: TestAgent | null = null;
  /** Modules of the managed resources, by key. */
  record = new Map<string, string>();
  #saved: Map<string, string> | null = null;

  async begin(): Promise<void> {
    for (const path of [this.root, `${this.root}.out`]) mkdirSync(path);
    mkdirSync(this.data, { mode: 0o700 });
    this.agent = await startAgent(this.data);
  }

  async end(): Promise<void> {
    await this.agent?.stop();
    removeDirectory(this.home);
  }

  /** Changes the agent's data while the agent is stopped. */
  async before(what: Step['before']): Promise<void> {
    if (what === 'nothing' || (what === 'restored' && this.#saved === null)) return;
    await this.agent?.stop();
    const copy = `${this.home}/saved`;
    if (what === 'saved') {
      rmSync(copy, { recursive: true, force: true });
      execFileSync('cp', ['-a', this.data, copy]);
      this.#saved = new Map(this.record);
    } else {
      rmSync(this.data, { recursive: true });
      this.record = new Map(what === 'restored' ? this.#saved : []);
      if (what === 'restored') execFileSync('cp', ['-a', copy, this.data]);
      else mkdirSync(this.data, { mode: 0o700 });
    }
    this.agent = await startAgent(this.data);
  }

  hands(what: readonly string[]): void {
    for (const name of ['stuck', 'broken']) {
      if (what.includes(name)) writeFileSync(`${this.root}.out/${name}`, '');
      else rmSync(`${this.root}.out/${name}`, { force: true });
    }
    const way = `${this.root}/way`;
    if (existsSync(`${way}/x`)) return;
    rmSync(way, { recursive: true, force: true });
    if (what.includes('way')) writeFileSync(way, 'in the way');
  }

  async apply({ modules: names, keep, how, at }: Step): Promise<void> {
    const desired = new Map<string, ResolvedResource>();
    for (const module of names)
      for (const name of modules[module] ?? []) {
        const resource = resources[name]?.(this.root, module) as ResolvedResource;
        if (!desired.has(resource.key)) desired.set(resource.key, resource);
      }
    const keep_modules = keep.filter((module) => !names.includes(module));
    const message = operation('apply', [...desired.values()], { keep_modules });
    const expected = [...desired.values()];
    const removed = [...this.record].filter(([key, module]) => !desired.has(key) && !keep_modules.includes(module));
    const outcome = await this.#run(message, how, at);
    expect(outcome.results.slice(0, expected.length).map(({ identity }) => identity)).toEqual(
      expected.map(({ identity }) => identity),
    );
    const removals = outcome.results.slice(expected.length);
    expect(removals.map(keyOf).sort()).toEqual(removed.map(([key]) => key).sort());
    expected.forEach(({ key, module, type }, i) => {
      const { status } = outcome.results[i] as ResourceResult;
      const isWell = status === 'changed' || status === 'unchanged';
      // A failed script may have made changes. A file whose path is blocked is unchanged.
      if (isWell || (status !== 'skipped' && (this.record.has(key) || type === 'script'))) this.record.set(key, module);
    });
    for (const result of removals)
      if (result.status === 'changed' || result.status === 'unchanged') this.record.delete(keyOf(result));
  }

  async #run(message: ReturnType<typeof operation>, how: Step['how'], at: number): Promise<Reported> {
    if (how === 'killed') {
      await this.agent?.stop();
      await cutOff(this.data, message, at);
      this.agent = await startAgent(this.data);
      await this.agent.engine.accept(message);
      return this.agent.ended(message.operation_id);
    }
    if (how === 'cancelled') {
      await this.agent?.stop();
      let passed = 0;
      const agent = await startAgent(this.data, {
        crashPoint: () => {
          if (++passed === at) agent.engine.cancel(message.operation_id);
        },
      });
      this.agent = agent;
    }
    return (this.agent as TestAgent).run(message);
  }

  async compare(): Promise<void> {
    const { results } = await (this.agent as TestAgent).run(operation('plan', []));
    expect(results.map(keyOf).sort()).toEqual([...this.record.keys()].sort());
  }
}

const keyOf = ({ type, identity }: ResourceResult): string =>
  type === 'script' ? `script:${identity}` : `path:${identity}`;

test('records exactly the resources that applies put in place', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 7 }), async (steps) => {
      const machine = new Machine();
      try {
        await machine.begin();
        for (const one of steps) {
          await machine.before(one.before);
          machine.hands(one.hands);
          await machine.apply(one);
          await machine.compare();
        }
      } finally {
        await machine.end();
      }
    }),
    { numRuns: 30 },
  );
});
