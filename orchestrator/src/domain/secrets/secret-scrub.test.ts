import { summarise } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createScrub, scrubReport } from './secret-scrub.ts';

const folded = (text: string, width: number): string => text.replace(new RegExp(`.{${width}}`, 'g'), '$&\n');

/** Programs that print a value after the text `before`, each in its own encoding. */
const writers: Record<string, (value: string, before: string) => string> = {
  'as it is': (value) => value,
  JSON: (value, before) => JSON.stringify({ text: before + value }),
  'JSON of Python': (value) =>
    JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'JSON of PHP': (value) => JSON.stringify(value).replaceAll('/', '\\/'),
  'an address': (value, before) => encodeURIComponent(before + value),
  'a form': (value, before) => new URLSearchParams({ before, value }).toString(),
  base64: (value, before) => Buffer.from(before + value).toString('base64'),
  'base64 with more behind it': (value, before) => Buffer.from(`${before}${value} and more`).toString('base64'),
  'base64 in lines': (value, before) => folded(Buffer.from(before + value).toString('base64'), 76),
  'base64 in short lines': (value, before) => folded(Buffer.from(before + value).toString('base64'), 7),
  'base64 for addresses': (value, before) => Buffer.from(before + value).toString('base64url'),
  hexadecimal: (value, before) => Buffer.from(before + value).toString('hex'),
  'hexadecimal, by xxd -p -u': (value, before) =>
    folded(
      Buffer.from(before + value)
        .toString('hex')
        .toUpperCase(),
      60,
    ),
};

/**
 * Reports whether text contains a value, encoded at any alignment. Decodes the text, whereas the tested code searches
 * for encoded forms.
 */
function contains(text: string, value: string): boolean {
  if (text.includes(value)) return true;
  const joined = text.replaceAll(/\s/g, '');
  for (const [encoding, alphabet, size] of [
    ['base64', /[A-Za-z0-9+/]+/g, 4],
    ['base64url', /[A-Za-z0-9_-]+/g, 4],
    ['hex', /[0-9a-fA-F]+/g, 2],
  ] as const)
    for (const [run] of joined.matchAll(alphabet))
      for (let from = 0; from < size; from++)
        if (Buffer.from(run.slice(from), encoding).includes(Buffer.from(value))) return true;
  try {
    return decodeURIComponent(text.replaceAll('+', ' ')).includes(value) || JSON.stringify(JSON.parse(text)) === value;
  } catch {
    return false;
  }
}

const anyText = (shortest: number) => fc.string({ unit: 'grapheme', minLength: shortest, maxLength: 60 });
/** Secrets that do not occur in the replacement `(sensitive)`. */
const secrets = anyText(4).filter((value) => value.trim().length >= 4 && !'((sensitive))'.includes(value.trim()));

describe('scrubbing a value with at least four characters', () => {
  for (const [name, write] of Object.entries(writers))
    test(`hides a value written as ${name}`, () => {
      fc.assert(
        fc.property(secrets, anyText(0), anyText(0), anyText(0), (value, before, head, tail) => {
          const said = write(value, before);
          const scrubbed = createScrub([value])(`${head} ${said} ${tail}`);
          expect(scrubbed).toContain('(sensitive)');
          expect(scrubbed).not.toContain(value);
          expect(scrubbed).not.toContain(JSON.stringify(value).slice(1, -1));
          expect(scrubbed).not.toContain(Buffer.from(value).toString('hex'));
        }),
        { numRuns: 200 },
      );
    });

  test('hides a base64-encoded value at any offset in the encoded text', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 8, maxLength: 40 }),
        fc.uint8Array({ maxLength: 9 }),
        fc.uint8Array({ maxLength: 9 }),
        fc.constantFrom('base64', 'base64url', 'hex'),
        (value, before, after, encoding) => {
          const said = Buffer.concat([before, Buffer.from(value), after]).toString(encoding);
          expect(contains(said, value)).toBe(true);
          expect(contains(createScrub([value])(said), value)).toBe(false);
        },
      ),
    );
  });

  test('hides overlapping and nested values', () => {
    expect(createScrub(['abcdef', 'defghi'])('<abcdefghi>')).toBe('<(sensitive)>');
    expect(createScrub(['bcde', 'abcdef'])('<abcdef> <bcde>')).toBe('<(sensitive)> <(sensitive)>');
    expect(createScrub(['sens', 'x-sens'])('x-sens')).toBe('(sensitive)');
  });
});

describe('scrub', () => {
  test('hides each line of a value, as in a diff', () => {
    const scrub = createScrub(['-----BEGIN-----\nAAAABBBBCCCC\n}\n']);
    expect(scrub('@@ -0,0 +1 @@\n+AAAABBBBCCCC\n+}\n')).toBe('@@ -0,0 +1 @@\n+(sensitive)\n+}\n');
  });

  test('hides the part of a value that is cut off at the beginning or end of a text', () => {
    const value = Array.from({ length: 12 }, (_, i) => `k${i}-${(i * 7919) % 997}`).join('\n');
    const encoded = ['base64', 'hex'] as const;
    const said = [value, ...encoded.map((encoding) => folded(Buffer.from(`x${value}`).toString(encoding), 20))];
    const scrub = createScrub([value]);
    for (const text of said) {
      const lines = text.split('\n').filter((line) => line !== '');
      for (let from = 0; from < lines.length; from++)
        for (let to = from + 1; to <= lines.length; to++) {
          // A cut text starts or ends inside the value, so it has no surrounding text on that side.
          const part = [
            ...(from === 0 ? ['before'] : []),
            ...lines.slice(from, to),
            ...(to === lines.length ? ['after'] : []),
          ];
          const scrubbed = scrub(`${part.join('\n')}\n`, true);
          // The last line may be too short to be recognized as part of the value.
          for (const line of lines.slice(from, to))
            if (to < lines.length || line !== lines.at(-1)) expect(scrubbed).not.toContain(line);
          expect([scrubbed.includes('before'), scrubbed.includes('after')]).toEqual([from === 0, to === lines.length]);
        }
    }
    expect(scrub('before\nafter\n', true)).toBe('before\nafter\n');
  });

  test('leaves text without values unchanged and ignores short values', () => {
    fc.assert(
      fc.property(anyText(0), (text) => {
        expect(createScrub(['QyZ8-no-such-thing'])(text)).toBe(text);
        expect(createScrub(['abc', ''])(text)).toBe(text);
      }),
    );
  });

  test('scrubs the largest value from the largest output within a second of CPU time', () => {
    const cpuMs = (since: NodeJS.CpuUsage) => {
      const { user, system } = process.threadCpuUsage(since);
      return (user + system) / 1000;
    };
    const value = Buffer.from(Array.from({ length: 48 * 1024 }, (_, i) => (i * 7919) % 251)).toString('base64');
    const text = `${folded(Buffer.from(`x${value}`).toString('base64'), 76)}${'more of it\n'.repeat(10_000)}`;
    const began = process.threadCpuUsage();
    expect(createScrub([value])(text).length).toBeLessThan(text.length - value.length);
    expect(cpuMs(began)).toBeLessThan(1000);
    const cpuBefore = process.threadCpuUsage();
    expect(createScrub([value])(text.slice(0, 16 * 1024), true)).toBe('(sensitive)');
    expect(cpuMs(cpuBefore)).toBeLessThan(1000);
  });
});

test('scrubs every free-text field of a report', () => {
  const value = 'hunter2 "quoted"';
  const said = (field: string) => `${field}: ${value} ${Buffer.from(`x${value}`).toString('base64')}`;
  const result = {
    ...{ module: 'm', id: 'i', type: 'script', identity: 's', action: 'run', status: 'failed', corrective: false },
    ...{ triggered_by: [], duration_ms: 1, sensitive: false, message: said('message'), diff: said('diff') },
    changes: [{ field: 'f', from: said('from'), to: said('to') }],
  } as const;
  const operation_id = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
  const reports = [
    { type: 'accepted', operation_id },
    { type: 'results', operation_id, position: 0, results: [result] },
    {
      ...{ type: 'output', operation_id, resource: 'm/s', stdout: said('stdout'), stderr: said('stderr') },
      ...{ exit_code: 1, truncated: false },
    },
    {
      ...{ type: 'finished', operation_id, status: 'failed', summary: summarise([]), error: said('error') },
      ...{ started_at: 1, finished_at: 2 },
    },
  ] as unknown as Report[];
  const scrubbed = JSON.stringify(reports.map((report) => scrubReport(report, createScrub([value]))));
  expect(scrubbed).not.toContain('hunter2');
  expect(scrubbed).not.toContain(Buffer.from(`x${value}`).toString('base64').slice(4, -4));
  for (const field of ['message', 'diff', 'from', 'to', 'stdout', 'stderr', 'error'])
    expect(scrubbed).toContain(`"${field}: (sensitive) e(sensitive)=`);
});
