import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

/** Verifies that hanging programs do not block a stop, and that hanging observations do not block a cancellation. */

const h = useAgent();
const hanging = () =>
  script('s', { check: `touch ${h.root}/runs; sleep 60`, apply: `touch ${h.root}/applied`, undo: 'true' });
const running = () => expect.poll(() => existsSync(`${h.root}/runs`)).toBe(true);

for (const kind of ['apply', 'plan'] as const)
  test(`kills a hanging \`check\` when its ${kind} is canceled, and ignores its result`, async () => {
    const long = operation(kind, [hanging(), file(`${h.root}/f`)]);
    await h.agent.engine.accept(long);
    await running();
    h.agent.engine.cancel(long.operation_id);
    expect((await h.agent.ended(long.operation_id)).finished.status).toBe('cancelled');
    expect(existsSync(`${h.root}/applied`)).toBe(false);
    expect(existsSync(`${h.root}/f`)).toBe(false);
  });

test('kills a hanging `check` when the grace period of a stop expires', async () => {
  await h.restart({
    clock: { ...systemClock, after: (ms, action) => systemClock.after(ms === 20_000 ? 20 : ms, action) },
  });
  const long = operation('apply', [hanging()]);
  await h.agent.engine.accept(long);
  await running();
  await h.agent.stop();
  expect(existsSync(`${h.root}/applied`)).toBe(false);
  await h.restart();
  expect(h.agent.engine.openOperations()).toMatchObject([{ operation_id: long.operation_id }]);
  h.agent.engine.cancel(long.operation_id);
  await h.agent.ended(long.operation_id);
});

test('kills a hanging `apply` when the grace period of a stop expires, and reports it at the next start', async () => {
  await h.restart({
    clock: { ...systemClock, after: (ms, action) => systemClock.after(ms === 20_000 ? 20 : ms, action) },
  });
  const long = operation('apply', [script('s', { apply: `touch ${h.root}/runs; sleep 60; touch ${h.root}/applied` })]);
  await h.agent.engine.accept(long);
  await running();
  await h.restart();
  const outcome = await h.agent.ended(long.operation_id);
  expect(outcome.results).toMatchObject([{ status: 'unknown' }]);
  expect(existsSync(`${h.root}/applied`)).toBe(false);
});

test('keeps a script managed if the agent is killed after a cancellation', async () => {
  let isKilled = false;
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  await h.restart({
    log: silent,
    crashPoint() {
      if (isKilled) throw new Error('killed');
    },
  });
  const made = `${h.root}/made`;
  const apply = `touch ${h.root}/runs; until test -e ${h.root}/go; do sleep 0.02; done; touch ${made}`;
  const long = operation('apply', [script('s', { check: `test -e ${made}`, apply, undo: `rm ${made}` })]);
  await h.agent.engine.accept(long);
  await running();
  h.agent.engine.cancel(long.operation_id);
  isKilled = true;
  writeFileSync(`${h.root}/go`, '');
  await expect.poll(() => existsSync(made)).toBe(true);
  await h.restart({ log: silent });
  const { results } = await h.agent.ended(long.operation_id);
  expect(results).toMatchObject([
    { identity: 's', status: 'unknown', message: expect.stringContaining('may have run partly') },
  ]);
  await h.agent.run(operation('apply', []));
  expect(existsSync(made)).toBe(false);
});

test('keeps written files managed if the agent is killed after a cancellation', async () => {
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  let isKilled = false;
  const { root } = h;
  const files = ['a', 'b', 'c'].map((name) => file(`${root}/${name}`, { content: name }));
  writeFileSync(`${root}/b`, 'theirs');
  const long = operation('apply', files);
  await h.restart({
    log: silent,
    crashPoint(point) {
      if (isKilled) throw new Error('killed');
      if (point === 'resource:after') {
        h.agent.engine.cancel(long.operation_id);
        isKilled = true;
        throw new Error('killed');
      }
    },
  });
  await h.agent.engine.accept(long);
  await expect.poll(() => isKilled).toBe(true);
  await h.restart({ log: silent });
  expect((await h.agent.ended(long.operation_id)).finished.status).toBe('cancelled');
  await h.agent.run(operation('apply', []));
  expect(['a', 'b', 'c'].filter((name) => existsSync(`${root}/${name}`))).toEqual(['b']);
  expect(readFileSync(`${root}/b`, 'utf8')).toBe('theirs');
});

test('refuses to replace a file that changes while its new content is validated', async () => {
  writeFileSync(`${h.root}/f`, 'old');
  const swap = `echo theirs > ${h.root}/g; mv ${h.root}/g ${h.root}/f; test -e %`;
  const outcome = await h.agent.run(operation('apply', [file(`${h.root}/f`, { content: 'ours', validate: swap })]));
  expect(outcome.results).toMatchObject([
    { status: 'failed', message: expect.stringContaining('changed by another process') },
  ]);
  expect(readFileSync(`${h.root}/f`, 'utf8')).toBe('theirs\n');
});

test('kills a hanging `validate` when the operation is canceled, and leaves the file unchanged', async () => {
  const long = operation('apply', [
    file(`${h.root}/f`, { content: 'x', validate: `touch ${h.root}/runs; sleep 60; test -e %` }),
  ]);
  await h.agent.engine.accept(long);
  await running();
  h.agent.engine.cancel(long.operation_id);
  await h.agent.ended(long.operation_id);
  expect(existsSync(`${h.root}/f`)).toBe(false);
});
