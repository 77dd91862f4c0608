import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ResourceResult } from '@muster/protocol';
import type { OnlyIf, ResolvedResource } from '@muster/protocol/module';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sampled } from '../../../lib/test/sampled.ts';
import { defaultLimits } from './converge-engine.ts';
import { removeDirectory, startAgent, temporaryDirectory } from './test/agent.ts';
import { type ContractAgent, contractAgent } from './test/contract-agent.ts';
import { isStep, type JournalStep } from './test/cut.ts';
import { directory, file, operation, script } from './test/desired.ts';
import { planAndApplyOn } from './test/provider-contract.ts';
import { snapshotTree } from './test/tree.ts';

/** Verifies the guarantees of `only_if` for every kind of resource. */

let home: string;
let root: string;
let agent: ContractAgent;

beforeEach(async () => {
  home = temporaryDirectory();
  root = `${home}/root`;
  mkdirSync(root);
  agent = await contractAgent(`${home}/data`);
});
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});

const under = (only_if: OnlyIf, resource: ResolvedResource): ResolvedResource => ({ ...resource, only_if });
const onlyIf = (path: string, resource: ResolvedResource): ResolvedResource => under({ exists: path }, resource);
const plan = (resources: ResolvedResource[]) => agent.run(operation('plan', resources));
const apply = (resources: ResolvedResource[]) => agent.run(operation('apply', resources));
const drift = () => agent.run(operation('drift'));
const snapshot = async () => snapshotTree(root);
const statuses = (results: readonly ResourceResult[]) => results.map(({ status }) => status);
const conditioned = (content = 'x') =>
  onlyIf(`${root}/there`, file(`${root}/f`, { content, mode: '0644' }, { id: 'f' }));
const missing = () => `skipped, because ${root}/there does not exist (\`only_if\`)`;

/** Plans and applies, and expects both to have the given results and statuses. */
async function planAndApply(resources: ResolvedResource[]): Promise<ResourceResult[]> {
  const planned = statuses((await plan(resources)).results);
  const applied = await planAndApplyOn({ agent, snapshot }, resources);
  expect(statuses(applied)).toEqual(planned.map((status) => (status === 'would_change' ? 'changed' : status)));
  return applied;
}

describe('a resource whose path does not exist', () => {
  test('skips a resource and reports the reason until the path in its condition exists', async () => {
    expect(await planAndApply([conditioned()])).toMatchObject([{ status: 'skipped', message: missing() }]);
    expect(existsSync(`${root}/f`)).toBe(false);
    writeFileSync(`${root}/there`, '');
    // The resource was never applied, so it has not drifted.
    expect((await drift()).finished.summary).toMatchObject({ total: 0 });
    expect(statuses(await planAndApply([conditioned()]))).toEqual(['changed']);
    expect(statuses((await apply([conditioned()])).results)).toEqual(['unchanged']);
  });

  test('applies the dependents of a skipped resource and runs the verification', async () => {
    const dependent = file(`${root}/g`, { content: 'x' }, { depends_on: [`path:${root}/f`] });
    const third = file(`${root}/h`, { content: 'x' }, { depends_on: [`path:${root}/g`] });
    expect(statuses(await planAndApply([conditioned(), dependent, third]))).toEqual(['skipped', 'changed', 'changed']);
    const verify = [{ type: 'command', module: 'site', sensitive: false, timeout: 1, command: 'false' }] as const;
    const { finished } = await agent.run(operation('apply', [conditioned()], { verify: [...verify] }));
    expect(finished).toMatchObject({ status: 'failed', error: expect.stringMatching(/^verify: /) });
  });

  test('skips a resource whose dependency failed, and its own dependents', async () => {
    writeFileSync(`${root}/there`, '');
    const failing = script('fails', { apply: 'false' });
    const resource = onlyIf(`${root}/there`, file(`${root}/f`, {}, { id: 'f', depends_on: ['script:fails'] }));
    const dependent = file(`${root}/g`, {}, { depends_on: [`path:${root}/f`] });
    const { results, finished } = await apply([failing, resource, dependent]);
    expect(statuses(results)).toEqual(['failed', 'skipped', 'skipped']);
    expect(finished.status).toBe('failed');
    rmSync(`${root}/there`);
    expect((await apply([failing, resource, dependent])).results[1]?.message).toMatch(/`fails` failed/);
  });

  test('leaves an applied resource unchanged while the path in its condition is missing', async () => {
    writeFileSync(`${root}/there`, '');
    await apply([conditioned('first')]);
    rmSync(`${root}/there`);
    expect(statuses(await planAndApply([conditioned('second')]))).toEqual(['skipped']);
    expect(readFileSync(`${root}/f`, 'utf8')).toBe('first');
    writeFileSync(`${root}/f`, 'by hand');
    expect(await drift()).toMatchObject({ results: [], finished: { status: 'succeeded', summary: { skipped: 1 } } });
    writeFileSync(`${root}/f`, 'first');
    writeFileSync(`${root}/there`, '');
    // `first` is the content that was last applied.
    expect((await drift()).results).toEqual([]);
    writeFileSync(`${root}/f`, 'by hand');
    expect((await drift()).results).toMatchObject([{ status: 'would_change' }]);
    expect(statuses((await apply([conditioned('second')])).results)).toEqual(['changed']);
    rmSync(`${root}/there`);
    // Removals ignore conditions.
    expect(statuses((await apply([])).results)).toEqual(['changed']);
    expect(existsSync(`${root}/f`)).toBe(false);
  });

  test('triggers nothing for a skipped resource, and keeps its trigger due', async () => {
    const cause = file(`${root}/cause`, { content: '1' }, { id: 'cause' });
    const triggered = onlyIf(
      `${root}/there`,
      script('log', { apply: `echo x >> ${root}/log`, check: 'true' }, { rerun_on: [cause.key] }),
    );
    expect(statuses(await planAndApply([cause, triggered]))).toEqual(['changed', 'skipped']);
    writeFileSync(`${root}/there`, '');
    expect((await apply([cause, triggered])).results[1]).toMatchObject({ status: 'changed', triggered_by: ['cause'] });
  });
});

describe('an earlier resource', () => {
  test.each([
    ['the path', (): ResolvedResource => file(`${root}/there`, { content: '' })],
    ['a directory', () => directory(`${root}/there`)],
    ['something below it', () => file(`${root}/there/below`, { content: '' })],
  ])('plans and applies a resource whose path an earlier resource creates: %s', async (_what, maker) => {
    const before = await snapshot();
    const all = [maker(), conditioned(), file(`${root}/g`, { content: 'x' })];
    expect(statuses(await planAndApply(all))).toEqual(['changed', 'changed', 'changed']);
    expect(statuses((await apply(all)).results)).toEqual(['unchanged', 'unchanged', 'unchanged']);
    await apply([]);
    expect(await snapshot()).toEqual(before);
  });

  test('skips a resource in the plan and the apply if an earlier resource removes its path', async () => {
    writeFileSync(`${root}/there`, '');
    const all = [file(`${root}/there`, { ensure: 'absent' }), conditioned()];
    expect(statuses(await planAndApply(all))).toEqual(['changed', 'skipped']);
  });

  test('names, in a plan, the earlier resource that may create the path', async () => {
    const maker = (apply: string) => script('maker', { apply, check: `test -e ${root}/done` });
    const desired = [maker(`touch ${root}/there ${root}/done`), conditioned()];
    expect((await plan(desired)).results[1]).toMatchObject({
      status: 'would_change',
      message: `${root}/there does not exist now: skipped unless changed by \`maker\` (\`only_if\`)`,
    });
    expect(statuses((await apply([maker(`touch ${root}/done`), conditioned()])).results)).toEqual([
      'changed',
      'skipped',
    ]);
    rmSync(`${root}/done`);
    expect(statuses((await apply(desired)).results)).toEqual(['changed', 'changed']);
    // No resource changes, so none creates the path.
    rmSync(`${root}/there`);
    expect(statuses((await plan(desired)).results)).toEqual(['unchanged', 'skipped']);
  });

  test('applies a resource whose condition is a path that the same apply removes', async () => {
    writeFileSync(`${root}/f`, 'x');
    const all = [onlyIf(`${root}/f`, file(`${root}/f`, { ensure: 'absent' }))];
    expect(statuses(await planAndApply(all))).toEqual(['changed']);
    expect(statuses(await planAndApply(all))).toEqual(['skipped']);
  });
});

describe('the existence check', () => {
  test('agrees with `test -e` about whether a path exists', async () => {
    symlinkSync('nowhere', `${root}/dangling`);
    symlinkSync('circle', `${root}/circle`);
    writeFileSync(`${root}/target`, '');
    symlinkSync('target', `${root}/link`);
    const all = ['dangling', 'circle', 'target/below', 'none/below', 'link', 'target'].map((name, i) =>
      onlyIf(`${root}/${name}`, file(`${root}/out${i}`, { content: '' })),
    );
    expect(statuses(await planAndApply(all))).toEqual([
      ...['skipped', 'skipped', 'skipped', 'skipped'],
      ...['changed', 'changed'],
    ]);
  });

  test('fails the resource, and skips its dependents, when the path cannot be checked', async () => {
    const name = 'x'.repeat(300);
    const all = [
      onlyIf(`${root}/${name}`, file(`${root}/f`, {}, { id: 'f' })),
      file(`${root}/g`, {}, { depends_on: [`path:${root}/f`] }),
    ];
    const { results } = await apply(all);
    expect(results).toMatchObject([
      {
        status: 'failed',
        message: `\`only_if\`: cannot determine whether ${root}/${name} exists: the name is too long for the file system`,
      },
      { status: 'skipped' },
    ]);
    expect((await apply([onlyIf('relative', file(`${root}/f`))])).results).toMatchObject([
      { status: 'failed', message: '`only_if`: relative is not an absolute path' },
    ]);
  });
});

describe('commands, negations, and lists', () => {
  const out = (i: number, condition: OnlyIf) => under(condition, file(`${root}/out${i}`, { content: '' }));
  const yes = { command: 'true' };
  const no = { command: 'false' };

  test('applies a resource if and only if its condition is true', async () => {
    const cases: [OnlyIf, boolean][] = [
      [yes, true],
      [no, false],
      [{ not: yes }, false],
      [{ not: no }, true],
      [{ not: { exists: `${root}/none` } }, true],
      [{ not: { exists: root } }, false],
      [[{ exists: root }, yes], true],
      [[{ exists: root }, no], false],
      [{ not: [yes, no] }, true],
      [{ not: [yes, { exists: root }] }, false],
      [{ not: [{ not: [no] }, { not: yes }] }, true],
    ];
    for (const [i, [condition, holds]] of cases.entries())
      expect([condition, (await planAndApply([out(i, condition)]))[0]?.status]).toEqual([
        condition,
        holds ? 'changed' : 'skipped',
      ]);
  });

  test('reports which part of a condition is false', async () => {
    const conditions: OnlyIf[] = [
      { command: '  exit 3\n# more' },
      { not: { command: `true ${'x'.repeat(100)}` } },
      [{ exists: root }, { not: { exists: root } }],
      { not: [{ exists: root }, yes] },
    ];
    expect(
      (await apply(conditions.map((condition, i) => out(i, condition)))).results.map((one) => one.message),
    ).toEqual(
      [
        '`exit 3` fails with exit code 3',
        `\`true ${'x'.repeat(75)}…\` succeeds`,
        `${root} exists`,
        `${root} exists, and \`true\` succeeds`,
      ].map((reason) => `skipped, because ${reason} (\`only_if\`)`),
    );
  });

  test('runs a command as root with a clean environment, no input, and bounded output', async () => {
    process.env.MUSTER_TEST_LEAK = 'leaked';
    const command = `test "$(id -u)" = ${process.getuid?.()} && test -z "$MUSTER_TEST_LEAK" && ! read -r line && yes | head -c 1000000`;
    expect(statuses(await planAndApply([out(0, { command })]))).toEqual(['changed']);
    delete process.env.MUSTER_TEST_LEAK;
  });

  test('fails the resource if its command takes too long or is killed', async () => {
    mkdirSync(`${home}/slow`, { mode: 0o700 });
    const slow = await startAgent(`${home}/slow`, { limits: { ...defaultLimits, checkMs: 200 } });
    onTestFinished(() => slow.stop());
    const tooLong = [out(0, { not: { command: 'sleep 30' } })];
    expect((await slow.run(operation('apply', tooLong))).results).toMatchObject([
      { status: 'failed', message: '`only_if`: `sleep 30` was stopped because it took longer than 0.2 s' },
    ]);
    const killed = [out(1, { not: { command: 'kill -9 $$' } })];
    expect((await agent.run(operation('apply', killed))).results).toMatchObject([
      { status: 'failed', message: '`only_if`: `kill -9 $$` was ended by SIGKILL' },
    ]);
  });

  test('evaluates no further parts after a false one', async () => {
    expect(statuses(await planAndApply([out(0, [no, { command: `touch ${root}/ran` }])]))).toEqual(['skipped']);
    expect(existsSync(`${root}/ran`)).toBe(false);
  });

  test('skips a resource whose path an earlier resource creates, and applies one whose path it removes', async () => {
    writeFileSync(`${root}/old`, '');
    const all = [
      file(`${root}/new`, { content: '' }),
      file(`${root}/old`, { ensure: 'absent' }),
      out(0, { not: { exists: `${root}/new` } }),
      out(1, { not: { exists: `${root}/old` } }),
    ];
    expect(statuses(await planAndApply(all))).toEqual(['changed', 'changed', 'skipped', 'changed']);
    expect(statuses(await planAndApply(all))).toEqual(['unchanged', 'unchanged', 'skipped', 'unchanged']);
  });

  test('names, in a plan, the earlier resources that may change the condition', async () => {
    writeFileSync(`${root}/there`, '');
    const maker = script('maker', { apply: `rm ${root}/there`, check: `test ! -e ${root}/there` });
    const desired = [
      maker,
      out(0, { not: { exists: `${root}/there` } }),
      out(1, { command: `grep -q x ${root}/out0` }),
      out(2, [{ exists: root }, { not: { command: `test -e ${root}/there` } }]),
    ];
    const unless = (finding: string, labels: string) =>
      `${finding} now: skipped unless changed by ${labels} (\`only_if\`)`;
    expect((await plan(desired)).results.map(({ message }) => message)).toEqual([
      null,
      unless(`${root}/there exists`, '`maker`'),
      unless(`\`grep -q x ${root}/out0\` fails with exit code 2`, `\`maker\`, \`path:${root}/out0\``),
      unless(`\`test -e ${root}/there\` succeeds`, `\`maker\`, \`path:${root}/out0\`, \`path:${root}/out1\``),
    ]);
    expect(statuses((await apply(desired)).results)).toEqual(['changed', 'changed', 'skipped', 'changed']);
    expect(statuses((await plan(desired)).results)).toEqual(['unchanged', 'unchanged', 'skipped', 'unchanged']);
  });

  test('does not apply a resource that the plan skipped even if an earlier one fails', async () => {
    writeFileSync(`${root}/old`, '');
    const failing = file(`${root}/new`, { content: '', validate: 'false %' }, { id: 'new' });
    const desired = [
      failing,
      file(`${root}/old`, { ensure: 'absent' }, { id: 'old', depends_on: [failing.key] }),
      out(0, { not: { exists: `${root}/new` } }),
      out(1, { exists: `${root}/old` }),
    ];
    expect(statuses((await plan(desired)).results).slice(2)).toEqual(['skipped', 'skipped']);
    const reason = (label: string, finding: string) =>
      `skipped, because its condition depends on \`${label}\`, which did not succeed: ${finding} (\`only_if\`)`;
    expect((await apply(desired)).results.slice(2)).toMatchObject([
      { status: 'skipped', message: reason('new', `${root}/new does not exist`) },
      { status: 'skipped', message: reason('old', `${root}/old exists`) },
    ]);
  });

  test('measures drift only while the command in the condition succeeds', async () => {
    writeFileSync(`${root}/there`, '');
    const resource = under({ command: `test -e ${root}/there` }, file(`${root}/f`, { content: 'x' }));
    expect(statuses(await planAndApply([resource]))).toEqual(['changed']);
    writeFileSync(`${root}/f`, 'by hand');
    expect((await drift()).results).toMatchObject([{ status: 'would_change' }]);
    rmSync(`${root}/there`);
    expect(await drift()).toMatchObject({ results: [], finished: { summary: { skipped: 1 } } });
  });
});

describe('an agent that is cut off at any step', () => {
  /**
   * Interrupts an apply at each step of a sample, always from the same initial state, and compares the result with an
   * uninterrupted apply.
   */
  async function cutEverywhere(desired: () => ResolvedResource[], prepare: () => void): Promise<void> {
    const begin = async () => {
      await agent.forget();
      rmSync(root, { recursive: true });
      mkdirSync(root);
      prepare();
    };
    await begin();
    const planned = statuses((await plan(desired())).results);
    const { points, reported: undisturbed } = await agent.killedAt(operation('apply', desired()), 0);
    const after = await snapshot();
    expect(statuses(undisturbed.results)).toEqual(
      planned.map((status) => (status === 'would_change' ? 'changed' : status)),
    );
    const steps = points
      .map((point, i): JournalStep => ({ point, nth: points.slice(0, i + 1).filter((one) => one === point).length }))
      .filter(({ point }) => isStep(point));
    expect(steps.length).toBeGreaterThan(5);
    for (const at of sampled(steps, 6)) {
      await begin();
      const { reported } = await agent.killedAt(operation('apply', desired()), at);
      expect([at, reported.finished.status, statuses(reported.results)]).toEqual([
        at,
        'succeeded',
        statuses(undisturbed.results),
      ]);
      expect(await snapshot()).toEqual(after);
    }
  }

  test('applies exactly the plan after an interruption at any step', async () => {
    const desired = () => [
      // The resource is skipped, although a later resource creates the path in its condition.
      conditioned(),
      file(`${root}/there`, { content: '' }, { id: 'there' }),
      onlyIf(`${root}/there`, file(`${root}/g`, { content: 'x' }, { depends_on: [`path:${root}/f`] })),
      // The resource removes the path in its own condition.
      onlyIf(`${root}/gone`, file(`${root}/gone`, { ensure: 'absent' })),
      onlyIf(`${root}/gone`, file(`${root}/late`, { content: 'x' })),
      under({ command: `test ! -e ${root}/gone` }, file(`${root}/later`, { content: 'x' })),
      under({ not: [{ exists: `${root}/later` }] }, file(`${root}/never`, { content: 'x' })),
      onlyIf(`${root}/g`, script('taken', { check: `test ! -e ${root}/old`, apply: `rm ${root}/old`, undo: 'true' })),
      file(`${root}/last`, { content: 'x' }),
    ];
    await cutEverywhere(desired, () => {
      writeFileSync(`${root}/old`, '');
      writeFileSync(`${root}/gone`, '');
    });
  });
});
