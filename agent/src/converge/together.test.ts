import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HostFailure } from '../host/failure.ts';
import type { Database, Json, Provider } from '../resources/provider/provider.ts';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './test/agent.ts';
import { file, operation, script, unpacked } from './test/desired.ts';
import { madeArchive } from './test/made-archive.ts';

/**
 * Tests batches with simulated kinds in a directory: a package is a file, a transaction is a line in a list, and a
 * restart is a line in a log. The e2e tests check the real kinds on real machines.
 */

let home: string;
let root: string;
let agent: TestAgent;
let reads = 0;
let recovered = 0;

const lines = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
const transactions = () => lines(`${root}/transactions`);
const installed = (): string[] => readdirSync(`${root}/packages`).sort();

const nameOf = (resource: ResolvedResource): string => resource.identity;
const absent = (body: ResolvedResource['body']): boolean => 'ensure' in body && body.ensure === 'absent';

const list: Database<ReadonlySet<string>> = {
  name: 'list',
  read: async () => {
    reads++;
    return new Set(installed());
  },
};

type Seen = { there: boolean };

const packages: Provider<Seen, Json> = {
  type: 'package-brew',
  fields: { name: 'text', ensure: 'text?' },
  recheckable: true,
  brings: () => ['accounts', 'units', 'programs'],
  bringsToDependents: () => ['packages'],
  path: () => null,
  check() {},
  async observe(resource, _circumstances, machine) {
    // Concurrent requests read the database once.
    const [known] = await Promise.all([machine.database(list), machine.database(list)]);
    return { there: known.has(nameOf(resource)) };
  },
  diff({ body, identity }, { there }) {
    if (identity === 'extra' && !there && !installed().includes('release'))
      return {
        action: 'create',
        changes: [{ field: 'ensure', from: 'absent', to: 'present' }],
        diff: null,
        awaits: [{ kind: 'packages', message: 'nobody offers extra' }],
      };
    if (there !== absent(body)) return { action: 'none', changes: [], diff: null };
    return absent(body)
      ? { action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }], diff: null }
      : { action: 'create', changes: [{ field: 'ensure', from: 'absent', to: 'present' }], diff: null };
  },
  inBrief: (seen) => ({ ...seen }),
  revealsCompletion: () => true,
  weight: () => 0,
  async remember(_resource, { there }, _difference, before) {
    return before ?? { there };
  },
  claim: () => null,
  apply: () => Promise.reject(new Error('not one by one')),
  async observeForRemoval(resource, _before, machine) {
    return { there: (await machine.database(list)).has(nameOf(resource)) };
  },
  diffRemoval(_resource, before, { there }) {
    if (there === (before as Seen).there) return { action: 'none', changes: [], diff: null };
    return { action: 'remove', changes: [], diff: null };
  },
  remove: () => Promise.reject(new Error('not one by one')),
  async together(items) {
    const names = items.map(({ resource }) => nameOf(resource));
    if (names.includes('locked')) throw new HostFailure('the list is locked');
    appendFileSync(`${root}/transactions`, `${items[0]?.kind} ${names.join(' ')}\n`);
    return items.map(({ kind, resource }) => {
      const name = nameOf(resource);
      if (name === 'broken') return { failure: 'it does not install', output: outputOf('no such thing') };
      if (name === 'half' && kind === 'apply') writeFileSync(`${root}/packages/half`, '');
      if (name === 'half' && kind === 'apply') return { failure: 'it is there and not configured' };
      if ((kind === 'remove') !== absent(resource.body)) rmSync(`${root}/packages/${name}`, { force: true });
      else writeFileSync(`${root}/packages/${name}`, '');
      return { message: `${name} was dealt with` };
    });
  },
  async recover() {
    recovered++;
  },
};

const outputOf = (stderr: string) => ({ stdout: '', stderr, exitCode: 1, truncated: false });

function isConfirmed(resource: ResolvedResource): boolean {
  return nameOf(resource).startsWith('confirmed');
}

/** A simplified systemd unit, which only counts its restarts. */
const units: Provider<{ restarts: number; isDown: boolean; mustWait: boolean }, Json> = {
  ...(packages as unknown as Provider<{ restarts: number; isDown: boolean; mustWait: boolean }, Json>),
  type: 'service-launchd',
  brings: () => [],
  observe: (resource) => ({
    restarts: lines(`${root}/restarts-${nameOf(resource)}`).length,
    isDown: existsSync(`${root}/down`),
    mustWait: existsSync(`${root}/wait`),
  }),
  diff: (resource, { mustWait }, { restartBy }) =>
    nameOf(resource) === 'from-package' && !installed().includes('daemon')
      ? {
          action: 'restart',
          changes: [],
          diff: null,
          awaits: [{ kind: 'units', message: 'there is no unit from-package' }],
        }
      : {
          ...{ action: restartBy.length > 0 ? 'restart' : 'none', changes: [], diff: null },
          ...(restartBy.length > 0 && mustWait ? { waits: 'it must wait' } : {}),
        },
  remember: async () => ({}),
  diffRemoval: () => ({ action: 'none', changes: [], diff: null }),
  async together(items) {
    return items.map(({ resource }) => {
      if (existsSync(`${root}/refuse`)) return { failure: 'it refuses' };
      if (nameOf(resource) === 'confirmed' && !existsSync(`${root}/b`)) return { failure: 'it needs b' };
      if (isConfirmed(resource) && lines(`${root}/a`).includes('bad')) return { failure: 'it does not work with a' };
      rmSync(`${root}/down`, { force: true });
      appendFileSync(`${root}/restarts-${nameOf(resource)}`, 'restart\n');
      return {};
    });
  },
  confirms: isConfirmed,
  runs: ({ restarts, isDown }) => restarts > 0 && !isDown,
  wasApplied: (_resource, brief, seen) => seen.restarts > (brief as { restarts: number }).restarts,
};

vi.mock('../resources/registry.ts', async (original) => {
  const registry = await original<typeof import('../resources/registry.ts')>();
  const played: Record<string, unknown> = {
    'package-brew': () => packages,
    'service-launchd': () => units,
  };
  return {
    ...registry,
    providerOf: (type: string) =>
      (played[type] as (() => Provider) | undefined)?.() ?? registry.providerOf(type as never),
  };
});

const pack = (name: string, more: Partial<ResolvedResource> = {}): ResolvedResource => ({
  ...file('/x'),
  key: `package-brew:${name}`,
  type: 'package-brew',
  id: name,
  identity: name,
  body: { name },
  ...more,
});
const unit = (name: string, restart_on: string[]): ResolvedResource => ({
  ...pack(name),
  key: `service-launchd:${name}`,
  type: 'service-launchd',
  depends_on: restart_on,
  restart_on,
});

async function begin(): Promise<void> {
  home = temporaryDirectory();
  root = `${home}/root`;
  mkdirSync(`${root}/packages`, { recursive: true });
  mkdirSync(`${home}/data`, { mode: 0o700 });
  agent = await startAgent(`${home}/data`);
  reads = 0;
  recovered = 0;
}
beforeEach(begin);
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});
const apply = (resources: ResolvedResource[]) => agent.run(operation('apply', resources));
const plan = (resources: ResolvedResource[]) => agent.run(operation('plan', resources));

test('applies adjacent resources in one transaction, and reads the database once before and once after it', async () => {
  writeFileSync(`${root}/packages/there`, '');
  const desired = [pack('a'), pack('there'), pack('b'), pack('c')];
  const planned = await plan(desired);
  expect(reads).toBe(1);
  const reported = await apply(desired);
  expect(transactions()).toEqual(['apply a b c']);
  expect(reported.results).toMatchObject([
    { identity: 'a', action: 'create', status: 'changed', message: 'a was dealt with' },
    { identity: 'there', action: 'none', status: 'unchanged' },
    { identity: 'b', status: 'changed' },
    { identity: 'c', status: 'changed' },
  ]);
  expect(reported.results.map(({ action, changes }) => ({ action, changes }))).toEqual(
    planned.results.map(({ action, changes }) => ({ action, changes })),
  );
  reads = 0;
  expect((await apply(desired)).finished.summary).toMatchObject({ unchanged: 4 });
  expect(reads).toBe(1);
  expect(transactions()).toHaveLength(1);
  const removed = await apply([pack('c')]);
  expect(transactions()).toEqual(['apply a b c', 'remove b a']);
  expect(removed.results).toMatchObject([
    { identity: 'c' },
    { status: 'changed' },
    { action: 'none' },
    { status: 'changed' },
  ]);
  expect(installed()).toEqual(['c', 'there']);
});

test('applies a dependent in its own transaction, and skips it if its dependency fails', async () => {
  const reported = await apply([
    pack('broken'),
    pack('fine'),
    pack('on-broken', { depends_on: ['package-brew:broken'] }),
    pack('on-fine', { depends_on: ['package-brew:fine'] }),
  ]);
  expect(reported.results).toMatchObject([
    { status: 'failed', message: 'it does not install' },
    { status: 'changed' },
    { status: 'skipped', message: expect.stringContaining('`broken` failed') },
    { status: 'changed' },
  ]);
  expect(transactions()).toEqual(['apply broken fine', 'apply on-fine']);
  expect(reported.outputs).toMatchObject([{ resource: 'site/broken', stderr: 'no such thing' }]);
});

test('manages a failed resource only if it left something behind', async () => {
  await apply([pack('half'), pack('broken')]);
  const reported = await apply([]);
  expect(reported.results.map(({ identity, status }) => ({ identity, status }))).toEqual([
    { identity: 'half', status: 'changed' },
  ]);
  expect(installed()).toEqual([]);
});

test('fails every resource of a refused batch, and applies the other resources', async () => {
  const reported = await apply([pack('a'), pack('locked'), file(`${root}/f`, { content: 'x' }), pack('b')]);
  expect(reported.results).toMatchObject([
    { status: 'failed', message: 'the list is locked' },
    { status: 'failed', message: 'the list is locked' },
    { status: 'changed' },
    { status: 'changed' },
  ]);
});

test('expects, in a plan, a unit only if a package that changes may install it', async () => {
  const service = unit('from-package', []);
  expect((await plan([service])).results).toMatchObject([
    { status: 'failed', message: 'there is no unit from-package' },
  ]);
  expect((await plan([pack('daemon'), service])).results).toMatchObject([
    { status: 'would_change' },
    {
      status: 'would_change',
      action: 'restart',
      message: 'will be available after `daemon`; now there is no unit from-package',
    },
  ]);
  // Neither the other change nor an installed package provides the unit.
  expect((await plan([file(`${root}/f`, { content: 'x' }), service])).results).toMatchObject([
    { status: 'would_change' },
    { status: 'failed' },
  ]);
  const reported = await apply([pack('daemon'), service]);
  expect(reported.results).toMatchObject([{ status: 'changed' }, { status: 'unchanged' }]);
  expect((await apply([pack('other'), unit('missing-one', [])])).finished.status).toBe('succeeded');
});

test('expects a source to provide a package in a plan, but only for dependents of the source', async () => {
  const release = pack('release');
  const dependent = pack('extra', { depends_on: [release.key] });
  const through = pack('extra', { depends_on: [`path:${root}/f`] });
  const between = file(`${root}/f`, { content: 'x' }, { depends_on: [release.key] });
  const available = { status: 'would_change', message: 'will be available after `release`; now nobody offers extra' };
  expect((await plan([release, dependent])).results).toMatchObject([{ status: 'would_change' }, available]);
  expect((await plan([release, between, through])).results.at(-1)).toMatchObject(available);
  // The plan fails for a package that does not depend on the source.
  const failed = { status: 'failed', message: 'nobody offers extra' };
  expect((await plan([release, pack('extra')])).results).toMatchObject([{ status: 'would_change' }, failed]);
  expect((await plan([dependent])).results).toMatchObject([failed]);
  const reported = await apply([release, dependent]);
  expect(reported.results).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
  expect(transactions()).toEqual(['apply release', 'apply extra']);
  // An installed package that needs no change provides nothing.
  rmSync(`${root}/packages/extra`);
  expect((await plan([release, dependent])).results).toMatchObject([
    { status: 'unchanged' },
    { status: 'would_change' },
  ]);
});

test('plans to remove a path that is declared absent if it depends on a package that may create it', async () => {
  const daemon = pack('daemon');
  const absentFile = (dependsOn: string[]) => file(`${root}/brought`, { ensure: 'absent' }, { depends_on: dependsOn });
  expect((await plan([daemon, absentFile([])])).results).toMatchObject([
    { status: 'would_change' },
    { status: 'unchanged' },
  ]);
  expect((await plan([daemon, absentFile([daemon.key])])).results).toMatchObject([
    { status: 'would_change' },
    { status: 'would_change', action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }] },
  ]);
  const reported = await apply([daemon, absentFile([daemon.key])]);
  expect(reported.results).toMatchObject([{ status: 'changed' }, { status: 'unchanged' }]);
  expect((await plan([daemon, absentFile([daemon.key])])).results).toMatchObject([
    { status: 'unchanged' },
    { status: 'unchanged' },
  ]);
});

test('observes files again if an earlier file in the run provides the missing unit', async () => {
  const reported = await apply([
    file(`${root}/f`, { content: 'x' }),
    pack('daemon'),
    unit('from-package', [`path:${root}/f`]),
  ]);
  expect(reported.results.map(({ action, status }) => `${action} ${status}`)).toEqual([
    'create changed',
    'create changed',
    'restart changed',
  ]);
  expect(lines(`${root}/restarts-from-package`)).toHaveLength(1);
});

test('finishes with one transaction and one restart even if it is killed at any step', async () => {
  const desired = () => [
    file(`${root}/f`, { content: 'x' }),
    pack('a'),
    pack('b'),
    unit('one', [`path:${root}/f`]),
    unit('two', ['package-brew:a', `path:${root}/f`]),
    pack('c', { depends_on: ['service-launchd:one'] }),
  ];
  let cut = 0;
  for (let at = 1; ; at++) {
    await agent.stop();
    removeDirectory(home);
    await begin();
    await agent.stop();
    let passed = 0;
    let name = '';
    let dead = () => {};
    const died = new Promise<void>((resolve) => {
      dead = resolve;
    });
    const doomed = await startAgent(`${home}/data`, {
      log: { debug() {}, info() {}, warn() {}, error() {} },
      crashPoint(point) {
        passed++;
        if (passed === at) name = point;
        if (passed < at) return;
        dead();
        throw new Error('cut off');
      },
    });
    const applied = operation('apply', desired());
    const run = doomed.run(applied).catch(() => null);
    const outcome = await Promise.race([died.then(() => 'cut'), run.then(() => 'whole')]);
    if (outcome === 'whole') {
      await doomed.stop();
      agent = await startAgent(`${home}/data`);
      break;
    }
    cut++;
    agent = await startAgent(`${home}/data`);
    await agent.engine.accept(applied);
    const reported = await agent.ended(applied.operation_id);
    expect(reported.finished, `${at} ${name}`).toMatchObject({
      status: 'succeeded',
      summary: { total: 6, changed: 6 },
    });
    expect(
      reported.results.map(({ action }) => action),
      name,
    ).toEqual(['create', 'create', 'create', 'restart', 'restart', 'create']);
    expect(transactions(), name).toEqual(['apply a b', 'apply c']);
    for (const one of ['one', 'two']) expect(lines(`${root}/restarts-${one}`), name).toEqual(['restart']);
    expect((await apply(desired())).finished.summary, name).toMatchObject({ unchanged: 6 });
    await apply([]);
    expect(installed(), name).toEqual([]);
  }
  expect(cut).toBeGreaterThan(12);
});

const waiting = () => [
  file(`${root}/f`, { content: 'x' }, { id: 'f' }),
  unit('late', [`path:${root}/f`]),
  pack('a', { depends_on: ['service-launchd:late'] }),
];

test('skips a resource that must wait and what depends on it, and keeps its trigger due', async () => {
  writeFileSync(`${root}/wait`, '');
  expect(shown(await plan(waiting()))).toEqual(['create changed ', 'none skipped ', 'none skipped ']);
  const { finished, results } = await apply(waiting());
  expect(finished.status).toBe('succeeded');
  expect(results[1]).toMatchObject({ status: 'skipped', message: 'skipped, because it must wait' });
  expect(shown(await apply(waiting()))).toEqual(['none unchanged ', 'none skipped ', 'none skipped ']);
  rmSync(`${root}/wait`);
  expect(shown(await apply(waiting()))).toEqual(['none unchanged ', 'restart changed f', 'create changed ']);
  expect(lines(`${root}/restarts-late`)).toHaveLength(1);
});

test('counts a change as finished that a killed agent made before it had to wait', async () => {
  await agent.stop();
  const applied = operation('apply', waiting());
  let isDead = false;
  await new Promise<void>((resolve) => {
    startAgent(`${home}/data`, {
      log: { debug() {}, info() {}, warn() {}, error() {} },
      crashPoint(point) {
        if (point === 'batch:ended' && !isDead) {
          isDead = true;
          writeFileSync(`${root}/wait`, '');
          resolve();
        }
        if (isDead) throw new Error('cut off');
      },
    }).then((doomed) => doomed.run(applied).catch(() => null));
  });
  agent = await startAgent(`${home}/data`);
  expect(shown(await agent.ended(applied.operation_id))).toEqual([
    ...['create changed ', 'restart changed f', 'create changed '],
  ]);
  expect(lines(`${root}/restarts-late`)).toHaveLength(1);
});

test('repairs an interrupted transaction before observing the packages again', async () => {
  await agent.stop();
  const { promise: died, resolve: dead } = Promise.withResolvers<void>();
  const doomed = await startAgent(`${home}/data`, {
    log: { debug() {}, info() {}, warn() {}, error() {} },
    crashPoint(point) {
      if (!point.startsWith('batch:')) return;
      dead();
      throw new Error('cut off');
    },
  });
  const applied = operation('apply', [pack('a')]);
  void doomed.run(applied).catch(() => null);
  await died;
  // Otherwise, its retry would also repair the transaction.
  await doomed.stop();
  agent = await startAgent(`${home}/data`);
  expect((await agent.ended(applied.operation_id)).finished.status).toBe('succeeded');
  expect(recovered).toBe(1);
});

/**
 * Declares a unit and a script that needs it. File `a` triggers the unit immediately, before the script; file `b`
 * triggers it after the script.
 */
function followed(a: string, b: string): ResolvedResource[] {
  const [first, second] = [`path:${root}/a`, `path:${root}/b`];
  const needs = script(
    'needs',
    { check: 'false', apply: `cat ${root}/restarts-follower | wc -l >> ${root}/seen` },
    { depends_on: [first] },
  );
  return [
    file(`${root}/a`, { content: a }, { id: 'a' }),
    needs,
    file(`${root}/b`, { content: b }, { id: 'b', depends_on: ['script:needs'] }),
    { ...unit('follower', [first, second]), immediate_on: [first] },
  ];
}
const seen = () => lines(`${root}/seen`).map(Number);
const restarts = () => lines(`${root}/restarts-follower`).length;
const shown = ({ results }: { results: ResourceResult[] }) =>
  results.map(
    ({ action, status, triggered_by }) => `${action} ${status.replace('would_change', 'changed')} ${triggered_by}`,
  );

test('restarts a unit immediately after a change, and again after a later trigger', async () => {
  const planned = await plan(followed('1', '1'));
  const applied = await apply(followed('1', '1'));
  expect(shown(applied)).toEqual(shown(planned));
  expect(shown(applied)).toEqual(['create changed ', 'run changed ', 'create changed ', 'restart changed a,b']);
  expect([seen(), restarts()]).toEqual([[1], 2]);
});

test('restarts a unit once if only its immediate trigger is due, and reports the restart with the unit', async () => {
  await apply(followed('1', '1'));
  const planned = await plan(followed('2', '1'));
  const applied = await apply(followed('2', '1'));
  expect(shown(applied)).toEqual(shown(planned));
  expect(applied.results[3]).toMatchObject({
    ...{ action: 'restart', status: 'changed', triggered_by: ['a'] },
    message: 'applied immediately after `a` changed',
  });
  expect([seen(), restarts()]).toEqual([[1, 3], 3]);
  expect((await apply(followed('2', '1'))).results[3]).toMatchObject({ action: 'none', status: 'unchanged' });
  expect(restarts()).toBe(3);
});

test('starts a confirmed unit only after its last immediate trigger; once it runs, restarts it after each change', async () => {
  const keys = [`path:${root}/a`, `path:${root}/b`];
  const files = (content: string) => ['a', 'b'].map((id) => file(`${root}/${id}`, { content }, { id }));
  const desired = (content: string) => [...files(content), { ...unit('confirmed', keys), immediate_on: keys }];
  const count = () => lines(`${root}/restarts-confirmed`).length;
  expect((await apply(desired('1'))).results.map(({ status }) => status)).toEqual(['changed', 'changed', 'changed']);
  expect(count()).toBe(1);
  await apply(desired('2'));
  expect(count()).toBe(3);
});

test('restores a file if the agent was killed while the file kept the unit from running, even if the unit has a later trigger', async () => {
  const keys = [`path:${root}/a`, `path:${root}/b`];
  const files = (a: string) => [
    file(`${root}/a`, { content: a }, { id: 'a' }),
    file(`${root}/b`, { content: '1' }, { id: 'b' }),
  ];
  const desired = (a: string) => [...files(a), { ...unit('confirmed', keys), immediate_on: keys }];
  await apply(desired('1'));
  await agent.stop();
  const applied = operation('apply', desired('bad'));
  let isDead = false;
  await new Promise<void>((resolve) => {
    startAgent(`${home}/data`, {
      log: { debug() {}, info() {}, warn() {}, error() {} },
      crashPoint(point) {
        if (point === 'immediately:synced') {
          isDead = true;
          writeFileSync(`${root}/down`, '');
          resolve();
        }
        if (isDead) throw new Error('cut off');
      },
    }).then((doomed) => doomed.run(applied).catch(() => null));
  });
  agent = await startAgent(`${home}/data`);
  const { results } = await agent.ended(applied.operation_id);
  expect(results.map(({ status }) => status)).toEqual(['failed', 'unchanged', 'skipped']);
  expect(results[0]?.message).toMatch(
    /it does not work with a\nIts former state is restored, and `confirmed` followed/,
  );
  expect([lines(`${root}/a`), existsSync(`${root}/down`)]).toEqual([['1'], false]);
});

test('does not start a unit during an undo if it was too early to apply that unit', async () => {
  const [a, b] = [`path:${root}/a`, `path:${root}/b`];
  const running = { ...unit('confirmed-2', [a]), immediate_on: [a] };
  await apply([file(a.slice(5), { content: '1' }, { id: 'a' }), running]);
  const { results } = await apply([
    file(a.slice(5), { content: 'bad' }, { id: 'a' }),
    file(b.slice(5), { content: '1' }, { id: 'b' }),
    { ...unit('confirmed', [a, b]), immediate_on: [a, b] },
    running,
  ]);
  expect(results[0]).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/Its former state is restored, and `confirmed-2` followed\.$/),
  });
});

/**
 * Applies an archive with two releases, and a running unit that it triggers immediately.
 * @returns the result of the archive
 */
async function release(version: number): Promise<ResourceResult | undefined> {
  const archive = unpacked(`${root}/app`, madeArchive(`echo ${version} > f`, 'tar --mtime=@0 -czf "$1" *'), {
    keep: 2,
  });
  return (await apply([archive, { ...unit('confirmed-2', [archive.key]), immediate_on: [archive.key] }])).results[0];
}
const released = () => readFileSync(`${root}/app/current/f`, 'utf8');

test('keeps a restored release when the next one is unpacked', async () => {
  await release(1);
  await release(2);
  for (const version of [1, 3]) {
    writeFileSync(`${root}/refuse`, '');
    expect((await release(version))?.message).toContain('Its former state is restored');
    expect(released()).toBe('2\n');
    rmSync(`${root}/refuse`);
  }
});

test('explains that a repaired release cannot be restored', async () => {
  await release(1);
  writeFileSync(`${root}/app/current/f`, 'by hand\n');
  writeFileSync(`${root}/refuse`, '');
  expect((await release(1))?.message).toMatch(
    /It is still in place, because .* had been changed, and was unpacked again/,
  );
  expect(released()).toBe('1\n');
});

test('fails a resource if the unit that it triggers immediately fails, and repeats the trigger at the same point in the next apply', async () => {
  await apply(followed('1', '1'));
  writeFileSync(`${root}/refuse`, '');
  const failed = await apply(followed('2', '1'));
  expect(failed.results.map(({ status }) => status)).toEqual(['failed', 'skipped', 'skipped', 'skipped']);
  expect(failed.results[0]?.message).toBe('it is in place, but `follower` could not follow: it refuses');
  expect((await apply(followed('2', '1'))).results[0]).toMatchObject({ action: 'none', status: 'failed' });
  rmSync(`${root}/refuse`);
  const planned = await plan(followed('2', '1'));
  const applied = await apply(followed('2', '1'));
  expect(shown(applied)).toEqual(shown(planned));
  expect(shown(applied)).toEqual(['none unchanged ', 'run changed ', 'none unchanged ', 'restart changed a']);
  expect([seen(), restarts()]).toEqual([[1, 3], 3]);
});

test('restarts a unit before later resources and after all triggers, even if it is killed at any step', async () => {
  let cut = 0;
  for (let at = 1; ; at++) {
    await agent.stop();
    removeDirectory(home);
    await begin();
    await apply(followed('1', '1'));
    await agent.stop();
    let passed = 0;
    let name = '';
    let dead = () => {};
    const died = new Promise<void>((resolve) => {
      dead = resolve;
    });
    const doomed = await startAgent(`${home}/data`, {
      log: { debug() {}, info() {}, warn() {}, error() {} },
      crashPoint(point) {
        passed++;
        if (passed === at) name = point;
        if (passed < at) return;
        dead();
        throw new Error('cut off');
      },
    });
    const applied = operation('apply', followed('2', '2'));
    const run = doomed.run(applied).catch(() => null);
    const outcome = await Promise.race([died.then(() => 'cut'), run.then(() => 'whole')]);
    if (outcome === 'whole') {
      await doomed.stop();
      agent = await startAgent(`${home}/data`);
      break;
    }
    cut++;
    agent = await startAgent(`${home}/data`);
    await agent.engine.accept(applied);
    const reported = await agent.ended(applied.operation_id);
    // An interrupted script is not run again, and its dependents are skipped.
    const interrupted = reported.results[1]?.status === 'unknown';
    if (interrupted) await apply(followed('2', '2'));
    else {
      expect(shown(reported), `${at} ${name}`).toEqual([
        'update changed ',
        'run changed ',
        'update changed ',
        'restart changed a,b',
      ]);
    }
    // The unit was restarted for `a` before the script ran, and for `b` at the end.
    for (const count of seen().slice(1)) expect(count, `${at} ${name}`).toBeGreaterThanOrEqual(3);
    const before = restarts();
    expect(before, `${at} ${name}`).toBeGreaterThan(seen().at(-1) as number);
    expect((await apply(followed('2', '2'))).results[3], name).toMatchObject({ action: 'none' });
    expect(restarts(), name).toBe(before);
  }
  expect(cut).toBeGreaterThan(8);
});
