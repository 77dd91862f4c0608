import type { ResourceResult } from '@muster/protocol';
import { limits, reportsSchema } from '@muster/protocol/wire';
import { expect, test } from 'vitest';
import { file, operation, script } from '../test/desired.ts';
import { useAgent } from '../test/harness.ts';
import { fittingReport, fittingResult } from './report-size-limit.ts';

const h = useAgent();
const id = '01TEST00000000000000000000';
const refused = () =>
  [...h.agent.engine.spool.pending(0)].flatMap(({ reports }) => reportsSchema.safeParse(reports).error ?? []);

test('truncates reports to the limits, even with hundreds of triggers and very long names', async () => {
  const files = Array.from({ length: 300 }, (_, i) =>
    file(`${h.root}/f${i}`, {}, i === 0 ? {} : { id: `${i}-${'x'.repeat(400)}` }),
  );
  const long = `${h.root}/${`${'n'.repeat(250)}/`.repeat(20)}f`;
  const desired = [
    ...files,
    file(long, { content: 'x' }),
    script('s', { apply: 'exit 0', check: 'true' }, { rerun_on: files.map(({ key }) => key) }),
  ];
  await h.agent.run(operation('plan', desired));
  const outcome = await h.agent.run(operation('apply', desired));
  expect(refused()).toEqual([]);
  expect(outcome.results.at(-1)).toMatchObject({ status: 'changed', triggered_by: { length: 256 } });
});

test('truncates the reason of an abandoned operation to the limit', async () => {
  await h.restart({
    log: { debug() {}, info() {}, warn() {}, error() {} },
    clock: {
      now: Date.now,
      monotonic: () => performance.now(),
      after: (_ms, action) => {
        setImmediate(action);
        return () => {};
      },
    },
    crashPoint(name) {
      if (name === 'resource:before') throw new Error('why '.repeat(5000));
    },
  });
  const outcome = await h.agent.run(operation('apply', [file(`${h.root}/f`)]));
  expect(outcome.finished.error).toContain('why why');
  expect(refused()).toEqual([]);
});

test('reports a failure if a result exceeds the limits even after it is truncated', () => {
  const hostile = {
    module: '\0',
    id: '',
    type: 'file-unix',
    identity: `\uD800\0${'i'.repeat(10_000)}`,
    action: 'update',
    status: 'changed',
    changes: [{ field: '', from: 1, to: null }],
    diff: 'd'.repeat(1_000_000),
    triggered_by: [],
    corrective: false,
    message: null,
    duration_ms: Number.NaN,
    sensitive: false,
  } as unknown as ResourceResult;
  const result = fittingResult(hostile, id);
  expect(result).toMatchObject({ status: 'failed', message: expect.stringContaining('is too large for a report') });
  expect(
    reportsSchema.safeParse([{ type: 'results', operation_id: id, position: 0, results: [result] }]).error,
  ).toBeUndefined();
  const output = fittingReport({
    type: 'output',
    operation_id: id,
    resource: 'r'.repeat(5000),
    stdout: 'o'.repeat(limits.maxScriptOutputLength + 1),
    stderr: '',
    exit_code: 0,
    truncated: false,
  });
  expect(output.truncated).toBe(true);
  expect(reportsSchema.safeParse([output]).error).toBeUndefined();
});
