import type { Report } from '@muster/protocol/wire';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { rowBytes, weightOf } from './kept-results.ts';
import { keepOutput, keepResults, newTally, type ReportLimits, reducedLimits } from './report-limits.ts';
import { SentNames } from './sent-names.ts';

const resource = (i: number) => ({ module: 'm', type: 'file-unix', identity: `/sent/${i}` });
const text = fc.string({ unit: 'grapheme', maxLength: 400 });
const removal = (i: number) => ({ module: 'old', type: 'file-unix', identity: `/old/${i}` });

const report = (count: number): fc.Arbitrary<Report> =>
  fc.oneof(
    fc.record({ position: fc.nat(count + 20), message: fc.option(text), diff: fc.option(text), size: fc.nat(5) }).map(
      ({ position, message, diff, size }): Report => ({
        type: 'results',
        operation_id: 'o',
        position,
        results: Array.from({ length: size + 1 }, (_, i) => {
          const at = position + i;
          return resultOf({ ...(at < count ? resource(at) : removal(at)), message, diff });
        }),
      }),
    ),
    fc.record({ at: fc.nat(count + 20), stdout: text, stderr: text }).map(
      ({ at, stdout, stderr }): Report => ({
        type: 'output',
        operation_id: 'o',
        resource: at < count ? `m/${resource(at).identity}` : `old/${removal(at).identity}`,
        stdout,
        stderr,
        exit_code: 0,
        truncated: false,
      }),
    ),
  );

/** Stores the rows by key, as the database does. */
function stored(reports: readonly Report[], sent: SentNames, allowed: ReportLimits) {
  let tally = newTally();
  const results = new Map<number, string>();
  const outputs = new Map<string, Extract<Report, { type: 'output' }>>();
  for (const given of reports) {
    if (given.type === 'results') {
      const accepted = keepResults(given, 'apply', sent, tally, allowed);
      if ('fault' in accepted) throw new Error(accepted.fault);
      for (const row of accepted.rows) results.set(row.position, row.text);
      tally = accepted.tally;
    } else if (given.type === 'output') {
      const accepted = keepOutput(given, sent, tally, allowed);
      if ('fault' in accepted) continue;
      if (accepted.output !== null) outputs.set(given.resource, accepted.output);
      tally = accepted.tally;
    }
  }
  return { results, outputs };
}

test('stores at most the allowed bytes, but always a row for each resource in the operation', () => {
  fc.assert(
    fc.property(
      fc
        .integer({ min: 1, max: 12 })
        .chain((count) => fc.tuple(fc.constant(count), fc.array(report(count), { maxLength: 60 }))),
      fc.integer({ min: 0, max: 20_000 }),
      fc.integer({ min: 0, max: 5_000 }),
      ([count, reports], operationBytes, removalBytes) => {
        const sent = new SentNames(Array.from({ length: count }, (_, i) => resource(i)));
        const { results, outputs } = stored(reports, sent, { operationBytes, removalBytes, because: 'why' });
        let bytes = 0;
        for (const row of results.values()) bytes += weightOf(row);
        for (const { resource: name, stdout, stderr } of outputs.values())
          bytes += rowBytes + 2 * Buffer.byteLength(name) + Buffer.byteLength(stdout) + Buffer.byteLength(stderr);
        // Each resource in the operation has a row with its names and the beginning of its message.
        const bareRow = 2_500;
        expect(bytes).toBeLessThanOrEqual(operationBytes + removalBytes + 2 * count * bareRow);
        for (const given of reports)
          if (given.type === 'results')
            for (let at = given.position; at < Math.min(count, given.position + given.results.length); at++)
              expect(results.has(at)).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

test('refuses every result and output whose name does not occur in the operation', () => {
  const sent = new SentNames([resource(0), resource(1)]);
  const allowed = reducedLimits('why');
  fc.assert(
    fc.property(fc.nat(1), text, text, (position, module, identity) => {
      fc.pre(module !== 'm' || identity !== resource(position).identity);
      const result = resultOf({ module, identity });
      for (const kind of ['apply', 'plan', 'drift'] as const)
        expect(
          keepResults(
            { type: 'results', operation_id: 'o', position, results: [result] },
            kind,
            sent,
            newTally(),
            allowed,
          ),
        ).toHaveProperty('fault');
      const output = {
        type: 'output',
        operation_id: 'o',
        stdout: '',
        stderr: '',
        exit_code: 0,
        truncated: false,
      } as const;
      fc.pre(`${module}/${identity}` !== `m/${resource(0).identity}`);
      fc.pre(`${module}/${identity}` !== `m/${resource(1).identity}`);
      expect(keepOutput({ ...output, resource: `${module}/${identity}` }, sent, newTally(), allowed)).toHaveProperty(
        'fault',
      );
    }),
  );
});

test('counts bytes, not characters', () => {
  expect(weightOf(JSON.stringify(resultOf({ message: '€'.repeat(100) })))).toBe(
    weightOf(JSON.stringify(resultOf({ message: 'x'.repeat(300) }))),
  );
});

test('accepts a name that the agent sanitized', () => {
  const identity = `/${'x'.repeat(5_000)}\u0000\ud800`;
  const sent = new SentNames([{ module: 'm', type: 'line', identity }]);
  const shortened = `${`/${'x'.repeat(5_000)}`.slice(0, 4_095)}…`;
  expect(sent.isAt(0, { module: 'm', type: 'line', identity: shortened })).toBe(true);
});
