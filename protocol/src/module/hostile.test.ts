import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { codePoint } from '../../test/code-point.ts';
import { type ParsedModule, parseModule } from './parse.ts';
import { moduleLimits } from './source/source.ts';

const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('');

const filled = (piece: string, size: number = moduleLimits.bytes - 200): string =>
  piece.repeat(Math.floor(size / piece.length));

/** A valid module that declares many files and is close to the value limit. */
const honest = `name: m
supports: [{ platform: linux }]
resources:
${lines(1400, (index) => `  - id: r${index}\n    resource:\n      file-unix:\n        path: /etc/f${index}\n        content: "hello"\n        mode: "0644"\n`)}`;

const hostile: Record<string, string | Uint8Array> = {
  'five megabytes': 'a: b\n'.repeat(1024 * 1024),
  'five megabytes of bytes': new Uint8Array(5 * 1024 * 1024).fill(97),
  'bytes that are no text': Uint8Array.from({ length: moduleLimits.bytes }, (_, index) => index % 256),
  'open brackets': filled('['),
  'open braces': filled('{a: '),
  'closing brackets': filled(']'),
  'many items': filled('- a\n'),
  'many keys': lines(150_000, (index) => `k${index}: v\n`),
  'many empty lists': `[${filled('[],')}]`,
  dashes: filled('- '),
  questions: filled('? '),
  'empty lines': filled('\n'),
  comments: filled('#x\n'),
  quotes: filled('"'),
  anchors: filled('&a '),
  tags: filled('!a '),
  directives: filled('%YAML 1.2\n'),
  documents: filled('---\n'),
  'many aliases': `x-a: &a x\nx-b: [${filled('*a,', 27_000)}]`,
  'an alias bomb': `x-0: &a0 [1,1,1,1,1,1,1,1,1]\n${lines(2000, (index) => `x-${index + 1}: &a${index + 1} [${`*a${index},`.repeat(4)}]\n`)}`,
  'a large text, often': `x-a: &a "${'y'.repeat(1_000_000)}"\nx-b: [${'*a,'.repeat(5000)}]`,
  'unknown keys': `name: m\n${lines(9900, (index) => `an_unknown_key_${index}: v\n`)}`,
  'unknown fields': `name: m\nresources:\n${lines(3300, () => '- {idd: a, resourc: b}\n')}`,
  'unknown ids': `name: m\nresources:\n${lines(1200, (index) => `- {id: resource_number_${index}, depends_on: [bogus_resource_${index}], resource: {sysctl: {key: k${index}, value: v}}}\n`)}`,
  'unknown modules': `name: m\nresources:\n${lines(1200, (index) => `- {id: r${index}, depends_on: ['${':x'.repeat(120)}', '${':'.repeat(250)}?'], notify: [{reload: 'r${index}:${':'.repeat(240)}'}], resource: {sysctl: {key: k${index}, value: v}}}\n`)}`,
  'one path, with conditions': `name: m\nsupports:\n${lines(1000, (index) => `- {platform: windows, tag.t${index}: x}\n`)}resources:\n${lines(1100, () => '- {when: {platform: linux}, resource: {file-unix: {path: /a}}}\n')}`,
  'many variants and clauses': `name: m\nsupports:\n${lines(1200, (index) => `- {tag.t${index}: x}\n`)}resources:\n- variants:\n${lines(1100, (index) => `  - {when: {tag.v${index}: a}, resource: {file-unix: {path: /a}}}\n`)}`,
  'variants that exclude values': `name: m
supports:
${lines(60, (index) => `- {platform: linux, tag.c: c${index}}\n`)}resources:
- variants:
${lines(316, (index) => `  - {when: {distro: {not: d${index}}}, resource: {file-unix: {path: /a}}}\n`)}${lines(400, (index) => `  - {when: {distro: z${index}, tag.a: a}, resource: {file-unix: {path: /a}}}\n`)}`,
  'conditions with many values': `name: m
supports: [{platform: linux}]
resources:
- variants:
${lines(38, (variant) => `  - {when: {distro: {not: [${lines(240, (value) => `d${variant}x${value},`)}]}}, resource: {file-unix: {path: /a}}}\n`)}`,
  'long values for a long enum': `name: m
supports: [{platform: linux}]
parameters:
  p:
    type: list
    items: { enum: [${lines(4500, (value) => `v${value},`)}] }
    default: [${lines(4500, (value) => `v${value},`)}]
`,
  'a long cycle': `name: m\nresources:\n${lines(1000, (index) => `- {id: r${index}, depends_on: [r${(index + 1) % 1000}], resource: {sysctl: {key: k${index}, value: v}}}\n`)}`,
  'openings of expressions': `name: m\ntemplates: [{id: a, content: '${filled('${{ ')}'}]`,
  'wrong expressions': `name: m\ntemplates: [{id: a, content: '${filled('${{ a }} ')}'}]`,
  'expressions without a value': `name: m\ntemplates: [{id: a, content: '${filled('${{ param.b }}')}'}]`,
  'open defaults': `name: m\ntemplates: [{id: a, content: '${filled('${{ tag.b | default("')}'}]`,
  'a long path': `name: m\nresources: [{resource: {file-unix: {path: '${filled('/a')}'}}}]`,
  'a long pattern': `name: m\nresources: [{resource: {line-unix: {path: /a, line: b, match: '${filled('(a+)+')}'}}}]`,
  'a long host name': `name: m\nresources: [{resource: {hostname: {name: '${filled('a-.')}'}}}]`,
  'a long schedule': `name: m\nresources: [{resource: {cron-unix: {name: a, user: b, command: c, schedule: '${filled('a ')}'}}}]`,
  'a long time zone': `name: m\nresources: [{resource: {timezone: {name: '${filled('a/')}!'}}}]`,
};

/** Measures CPU time in microseconds, because elapsed time depends on the machine's load. */
function timed(source: string | Uint8Array): { parsed: ParsedModule; took: number } {
  const before = process.threadCpuUsage();
  const parsed = parseModule(source);
  const { user, system } = process.threadCpuUsage(before);
  return { parsed, took: user + system };
}

// The checks stop at their limit and accept these modules, whose conflicts are reported when they are resolved.
const passed = [
  'many variants and clauses',
  'one path, with conditions',
  'variants that exclude values',
  'long values for a long enum',
];

// Uses the honest module as the reference, because machines differ in speed.
describe('hostile input', () => {
  /** CPU time for the honest module in microseconds. */
  let reference = Number.POSITIVE_INFINITY;

  // Runs several times, so that V8 compiles the code first.
  beforeAll(() => {
    for (let run = 0; run < 5; run += 1) reference = Math.min(reference, timed(honest).took);
  });

  test('accepts the honest reference module', () => expect(parseModule(honest).ok).toBe(true));

  test.each(Object.keys(hostile))(
    'parses %s in at most six times the CPU time of the honest module, and reports errors with positions',
    (name) => {
      const source = hostile[name] ?? '';
      const { parsed, took } = timed(source);
      // Measures both modules in turn if the ratio exceeds the limit, because the machine's speed varies. Modules that
      // allocate much memory are slower if other processes use the caches: a ratio of 3.7 was observed.
      let ratio = took / reference;
      for (let again = 0; again < 4 && ratio > 6; again += 1) ratio = timed(source).took / timed(honest).took;
      expect(ratio).toBeLessThan(6);

      expect(parsed.ok).toBe(passed.includes(name));
      if (parsed.ok) return;
      expect(parsed.faults.length).toBeGreaterThan(0);
      expect(parsed.faults.length).toBeLessThanOrEqual(moduleLimits.faults + 1);
      for (const { line, column, message } of parsed.faults) {
        expect(line).toBeGreaterThan(0);
        expect(column).toBeGreaterThan(0);
        expect(message.length).toBeLessThan(1000);
      }
    },
  );
});

describe('any input', () => {
  const valid = `name: m
supports: [{ platform: linux }]
parameters: { p: { type: list, default: [a] } }
templates: [{ id: t, content: "\${{ agent.name }}" }]
resources:
  - { id: a, for_each: "\${{ param.p }}", resource: { file-unix: { path: "/\${{ each }}", template: t, mode: "0644" } } }
  - id: b
    depends_on: [a]
    variants: [{ when: { distro: x }, resource: { script: { program: sh, apply: "true", rerun_on: [a] } } }]
verify: [{ tcp: { port: 22 } }]
`;
  const piece = fc.oneof(
    fc.constantFrom(
      '\n',
      '  ',
      '- ',
      ': ',
      '[',
      ']',
      '{',
      '}',
      ',',
      '&a ',
      '*a',
      '!t ',
      '|\n',
      '>\n',
      '"',
      "'",
      '#',
      '?',
      '%',
      '---\n',
      '...\n',
      '<<: ',
      '\t',
      '${{ ',
      ' }}',
      'null',
      '~',
      '1',
      'resource',
      'id: ',
    ),
    fc.string({ unit: codePoint, maxLength: 4 }),
  );

  test('does not throw for any input', () => {
    const mangled = fc
      .array(fc.tuple(fc.nat({ max: valid.length }), fc.nat({ max: 12 }), piece), { minLength: 1, maxLength: 6 })
      .map((edits) =>
        edits.reduce((text, [at, cut, insert]) => text.slice(0, at) + insert + text.slice(at + cut), valid),
      );
    const made = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));
    expect(parseModule(valid).ok).toBe(true);
    fc.assert(
      fc.property(fc.oneof(mangled, made), (text) => {
        const parsed = parseModule(text);
        if (!parsed.ok) expect(parsed.faults.length).toBeGreaterThan(0);
      }),
      { numRuns: 1000 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => void parseModule(bytes)));
  });
});
