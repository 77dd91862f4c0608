import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage } from '@muster/protocol/wire';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, type Told, temporaryDirectory } from './test/agent.ts';
import { cutOff } from './test/cut.ts';
import { block, directory, file, line, operation, script } from './test/desired.ts';
import { killedOff } from './test/killed.ts';
import { snapshotTree } from './test/tree.ts';

/**
 * Applies of changing modules, hand edits between them, things in the way, and an agent cut off at any step, against a
 * model that knows nothing of how any of it is done: what the machine looks like is what was there, with what is
 * declared laid over it, whatever came before.
 */

type Tree = Record<string, string>;

/** One thing that may be declared, in one of a few ways. */
interface Part {
  resource(root: string, way: number): ResolvedResource;
  /** Lays it over a tree. */
  lay(tree: Tree, way: number): void;
  /** What must be in the set with it. */
  with?: string;
}

/** One that is only there because something is in it: made for that, or declared before and left as it was. */
const anyDirectory = 'a directory';

const ways = [0, 1];
const modes = ['0640', '0755'] as const;
const put = (tree: Tree, path: string, mode: string, content: string): void => {
  const above = path.split('/').slice(1, -1);
  above.forEach((_, i) => {
    tree[`/${above.slice(0, i + 1).join('/')}`] ??= anyDirectory;
  });
  tree[path] = `0:0 10${mode} ${content}`;
};
const fileAt = (path: string): Part => ({
  resource: (root, way) => file(root + path, { content: `ours ${way}\n`, mode: modes[way] as string }, { id: path }),
  lay: (tree, way) => put(tree, path, modes[way] as string, `ours ${way}\n`),
});
const directoryAt = (path: string): Part => ({
  resource: (root, way) => directory(root + path, { mode: modes[way] as string }),
  lay(tree, way) {
    put(tree, path, '0644', '');
    tree[path] = `0:0 4${modes[way]} directory`;
  },
});
/** The lines of a text, in no order: what is put there in which apply is not what it is about. */
const addLine = (tree: Tree, text: string): void => {
  tree['/text'] = `${tree['/text']}${text}\n`;
};

const parts: Readonly<Record<string, Part>> = {
  '/d': directoryAt('/d'),
  '/d/e': directoryAt('/d/e'),
  '/a': fileAt('/a'),
  '/there': fileAt('/there'),
  '/d/b': fileAt('/d/b'),
  '/d/e/c': fileAt('/d/e/c'),
  '/way/x': fileAt('/way/x'),
  '/gone': {
    resource: (root) => file(`${root}/gone`, { ensure: 'absent' }),
    lay: (tree) => {
      delete tree['/gone'];
    },
  },
  line: {
    resource: (root, way) => line(`${root}/text`, `key=${way}`, { match: '^key=' }),
    lay(tree, way) {
      tree['/text'] = (tree['/text'] as string).replace(/key=.*/, `key=${way}`);
    },
  },
  more: {
    resource: (root) => line(`${root}/text`, 'one more'),
    lay: (tree) => addLine(tree, 'one more'),
  },
  block: {
    resource: (root, way) => block(`${root}/text`, 'ours', { content: `in it ${way}\n` }),
    lay: (tree, way) => addLine(tree, `in it ${way}`),
  },
  checked: {
    resource: (root) =>
      script('checked', {
        check: `test -e ${root}.out/checked`,
        apply: `echo x >> ${root}.out/checked`,
        undo: `rm ${root}.out/checked`,
      }),
    lay: () => {},
  },
  triggered: {
    resource: (root) =>
      script(
        'triggered',
        { check: 'true', apply: `echo x >> ${root}.out/triggered`, undo: 'true' },
        { rerun_on: [`path:${root}/a`] },
      ),
    lay: () => {},
    with: '/a',
  },
  dependent: {
    resource: (root) =>
      file(
        `${root}/dependent`,
        { content: 'x', mode: '0600' },
        { id: 'dependent', depends_on: [`path:${root}/way/x`] },
      ),
    lay: (tree) => put(tree, '/dependent', '0600', 'x'),
    with: '/way/x',
  },
};
const names = Object.keys(parts);

interface Round {
  set: Record<string, number>;
  /** What hands do before: edit a file, take it away, put something in the way or take it out of it. */
  hands: ('edit' | 'delete' | 'note' | 'block' | 'unblock')[];
  /** At which step the agent is cut off; beyond the last one it is not. */
  cutAt: number | null;
  /** Really: it is a process of its own, and what it was at is left as it is. */
  isKilled?: boolean;
  /** Bound to a plan; `late`: hands come in between. */
  plan: 'none' | 'bound' | 'late';
}

const round: fc.Arbitrary<Round> = fc.record({
  set: fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...ways), { maxKeys: names.length }).map((chosen) => {
    const set = { ...chosen };
    for (const name of Object.keys(set)) {
      const needed = parts[name]?.with;
      if (needed !== undefined) set[needed] ??= 0;
    }
    return set;
  }),
  hands: fc.subarray(['edit', 'delete', 'note', 'block', 'unblock'] as const, { maxLength: 2 }).map((all) => [...all]),
  cutAt: fc.option(fc.integer({ min: 1, max: 24 }), { freq: 2 }),
  // A process of its own takes its time.
  isKilled: fc.integer({ min: 0, max: 15 }).map((one) => one === 7),
  plan: fc.constantFrom('none' as const, 'none' as const, 'bound' as const, 'late' as const),
});

const essence = (results: readonly ResourceResult[]) =>
  results.map(({ identity, action, status, changes, triggered_by }) => ({
    identity,
    action,
    status: status === 'would_change' ? 'changed' : status,
    changes,
    triggered_by,
  }));

/** What was said of what did not go well, so that a disagreement tells what it is about. */
const said = (results: readonly ResourceResult[]): string =>
  results
    .filter(({ status }) => status !== 'unchanged' && status !== 'changed' && status !== 'would_change')
    .map(({ identity, status, message }) => `${identity} ${status}: ${message}`)
    .join('; ');

/** A tree in which the order of the text's lines, and the marks around the block, count for nothing. */
const loosely = (tree: Tree): Tree => {
  const [head = '', ...rest] = (tree['/text'] ?? '').split(/(?<=^\S+ \S+ )/);
  const lines = rest
    .join('')
    .split('\n')
    .filter((text) => text !== '' && !text.includes('ours'));
  return { ...tree, '/text': head + lines.sort().join('\n') };
};

class Machine {
  readonly home = temporaryDirectory();
  readonly root = `${this.home}/root`;
  agent: TestAgent | null = null;
  /** What would be there without us. */
  base: Tree = {};
  /** What was last put in place, by name. */
  placed: Record<string, number> = {};
  /** The trigger is due since an earlier apply. */
  due = false;
  fired = { least: 0, most: 0 };
  /** Steps of the agent that was cut off last. */
  passed: string[] = [];
  #noted = 0;

  async begin(): Promise<void> {
    mkdirSync(this.root);
    mkdirSync(`${this.root}.out`);
    mkdirSync(`${this.home}/data`, { mode: 0o700 });
    writeFileSync(`${this.root}/there`, 'first\n', { mode: 0o600 });
    writeFileSync(`${this.root}/gone`, 'still here\n', { mode: 0o604 });
    writeFileSync(`${this.root}/text`, 'top\nkey=first\nbottom\n', { mode: 0o644 });
    this.base = snapshotTree(this.root);
    this.agent = await startAgent(`${this.home}/data`);
  }

  async end(): Promise<void> {
    await this.agent?.stop();
    removeDirectory(this.home);
  }

  hand(what: Round['hands'][number]): void {
    const { root } = this;
    const takeUp = (path: string) => {
      this.base = { ...this.base, [path]: snapshotTree(root)[path] as string };
    };
    switch (what) {
      case 'edit':
        // Of ours, or of nobody's: then it is what was there before us from now on.
        writeFileSync(`${root}/there`, 'by hand\n');
        if (!('/there' in this.placed)) takeUp('/there');
        return;
      case 'delete':
        rmSync(`${root}/a`, { force: true });
        return;
      case 'note': {
        const text = `noted ${++this.#noted}`;
        appendFileSync(`${root}/text`, `${text}\n`);
        this.base = { ...this.base, '/text': `${this.base['/text']}${text}\n` };
        return;
      }
      case 'block':
        if (existsSync(`${root}/way`)) return;
        writeFileSync(`${root}/way`, 'in the way\n', { mode: 0o600 });
        takeUp('/way');
        return;
      case 'unblock':
        if (this.base['/way'] === undefined) return;
        rmSync(`${root}/way`);
        this.base = { ...this.base };
        delete this.base['/way'];
    }
  }

  /** What must be there when this is in place. */
  expected(set: Record<string, number>): Tree {
    const tree = { ...this.base };
    for (const name of names) if (name in set) (parts[name] as Part).lay(tree, set[name] as number);
    return tree;
  }

  desired(set: Record<string, number>): ResolvedResource[] {
    return names.flatMap((name) => (name in set ? (parts[name] as Part).resource(this.root, set[name] as number) : []));
  }

  run = (message: OperationMessage): Promise<Told> => {
    const { engine } = this.agent as TestAgent;
    engine.spool.acknowledge(engine.spool.lastSeq());
    return (this.agent as TestAgent).run(message);
  };

  /** Carried out by an agent that is cut off at a step, or killed there, and then by the next one. */
  async runCut(message: OperationMessage, at: number, isKilled: boolean): Promise<Told> {
    await this.agent?.stop();
    const data = `${this.home}/data`;
    const { points } = isKilled ? await killedOff(data, [message], at) : await cutOff(data, message, at);
    this.passed = points;
    this.agent = await startAgent(data);
    await this.agent.engine.accept(message);
    return this.agent.ended(message.operation_id);
  }
}

async function play(machine: Machine, { set, hands, cutAt, isKilled = false, plan }: Round): Promise<void> {
  if (plan !== 'late') for (const hand of hands) machine.hand(hand);
  const desired = machine.desired(set);
  const before = snapshotTree(machine.root);
  const planned = await machine.run(operation('plan', desired));
  expect(snapshotTree(machine.root)).toEqual(before);
  if (plan === 'late') for (const hand of hands) machine.hand(hand);
  const found = snapshotTree(machine.root);
  const bound = plan !== 'none' && planned.finished.plan_digest !== undefined;
  const apply = operation('apply', desired, bound ? { plan_digest: planned.finished.plan_digest as string } : {});
  const ended = cutAt === null ? await machine.run(apply) : await machine.runCut(apply, cutAt, isKilled);
  const { results, finished } = ended;
  if (finished.error?.startsWith('plan_stale')) {
    expect(bound && JSON.stringify(found) !== JSON.stringify(before)).toBe(true);
    expect(snapshotTree(machine.root)).toEqual(found);
    return;
  }
  const isSure = JSON.stringify(found) === JSON.stringify(before) || bound;
  const isUnknown = results.some(({ status }) => status === 'unknown');
  if (isSure && !isUnknown) {
    // What was said of an interrupted one is told anew; what it is, is not.
    const wasCut = ({ type, message }: ResourceResult) =>
      type === 'script' && message?.includes('in the middle') === true;
    const told = results.map((result, i) =>
      // What its `check` had said before is not on record.
      wasCut(result) ? { ...result, changes: planned.results[i]?.changes ?? [] } : result,
    );
    const why = `planned${bound ? ', bound' : ''} [${said(planned.results)}]; then [${said(results)}] after ${machine.passed.join(' ')}`;
    expect(essence(told), why).toEqual(essence(planned.results));
  }

  // A thing in the way fails what is behind it, skips what depends on that, and nothing else.
  const statusOf = (id: string) => results.find((result) => result.id === id)?.status;
  const isBlocked = '/way/x' in set && machine.base['/way'] !== undefined;
  for (const { id, status, identity, message } of results) {
    const wanted =
      id === '/way/x' && isBlocked
        ? /^failed$/
        : id === 'dependent' && isBlocked
          ? /^skipped$/
          : id === 'triggered' || id === 'checked'
            ? /^(unchanged|changed|unknown)$/
            : /^(unchanged|changed)$/;
    expect(status, `${identity}: ${message}`).toMatch(wanted);
  }
  const placed = { ...set };
  if (isBlocked) {
    delete placed['/way/x'];
    delete placed.dependent;
  }
  const expected = machine.expected(placed);
  const there = Object.entries(snapshotTree(machine.root)).map(([path, what]) => [
    path,
    expected[path] === anyDirectory && what.endsWith(' directory') ? anyDirectory : what,
  ]);
  expect(loosely(Object.fromEntries(there))).toEqual(loosely(expected));
  machine.placed = placed;

  // The trigger fires once for a change, and not without one, in this operation or, if that was cut short, in the next.
  const fires = 'triggered' in set && (statusOf('/a') === 'changed' || machine.due);
  const trigger = 'triggered' in set ? statusOf('triggered') : undefined;
  if ('triggered' in set) {
    if (fires) expect(trigger).toMatch(/^(changed|unknown)$/);
    else expect(trigger).toBe('unchanged');
  }
  if (trigger === 'changed') machine.fired.least++;
  if (trigger === 'changed' || trigger === 'unknown') machine.fired.most++;
  machine.due = fires && trigger !== 'changed';
  const log = `${machine.root}.out/triggered`;
  const ran = existsSync(log) ? readFileSync(log, 'utf8').length / 2 : 0;
  expect(ran).toBeGreaterThanOrEqual(machine.fired.least);
  expect(ran).toBeLessThanOrEqual(machine.fired.most);

  if (!isBlocked && !isUnknown) {
    const again = await machine.run(operation('apply', desired));
    expect(again.results.filter(({ status }) => status !== 'unchanged')).toEqual([]);
  }
}

/** All of it is gone when the agent is cut off, and nothing of that is told. */
const removedBeforeTheKill = (cutAt: number): Round[] => [
  { set: { '/d': 0, '/d/e': 0, '/d/e/c': 0 }, hands: [], cutAt: null, plan: 'none' },
  { set: {}, hands: [], cutAt, plan: 'none' },
];

/** Several files are on their way to the disk when it happens. */
const cutAmongFiles = (isKilled: boolean): Round[] => [
  { set: { '/a': 0, '/there': 0, '/d/b': 1, '/d/e/c': 0, triggered: 0 }, hands: [], cutAt: 11, isKilled, plan: 'none' },
];

/** So that one that hangs is told with what led to it. */
async function inTime(machine: Machine, playing: Promise<void>): Promise<void> {
  let callOff = () => {};
  const late = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => {
      const open = machine.agent?.engine.openOperations() ?? [];
      reject(new Error(`it hangs after ${machine.passed.join(' ')}; open: ${JSON.stringify(open)}`));
    }, 120_000);
    callOff = () => clearTimeout(timer);
  });
  await Promise.race([playing, late]).finally(callOff);
}

test('whatever comes in whatever order: what is there is what was there with what is declared laid over it', {
  timeout: 600_000,
}, async ({ skip }) => {
  if (process.getuid?.() !== 0) skip('needs root, to whom all it makes belongs');
  const examples: [Round[]][] = [
    ...[9, 10, 11].map((at): [Round[]] => [removedBeforeTheKill(at)]),
    [cutAmongFiles(false)],
    [cutAmongFiles(true)],
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 2, maxLength: 5 }), async (rounds) => {
      const machine = new Machine();
      try {
        await machine.begin();
        for (const one of rounds) await inTime(machine, play(machine, one));
        await machine.run(operation('apply', []));
        expect(snapshotTree(machine.root)).toEqual(machine.base);
        expect(existsSync(`${machine.root}.out/checked`)).toBe(false);
      } finally {
        await machine.end();
      }
    }),
    { numRuns: 25, endOnFailure: true, examples },
  );
});
