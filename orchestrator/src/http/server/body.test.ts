import { MusterError } from '@muster/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readJson } from './body.ts';
import { findFaults } from './json-faults.ts';

const read = (text: string) => readJson(Buffer.from(text));
function refusal(body: string | Buffer): MusterError {
  try {
    readJson(typeof body === 'string' ? Buffer.from(body) : body);
  } catch (error) {
    if (error instanceof MusterError) return error;
    throw error;
  }
  throw new Error('was taken');
}

describe('readJson', () => {
  test('accepts every value that JSON.parse accepts', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 5 }).filter((value) => !JSON.stringify(value).includes('__proto__')),
        fc.constantFrom(undefined, 2, '\t'),
        (value, indent) => {
          const text = JSON.stringify(value, null, indent);
          // fast-check may generate lone surrogates, which JSON.stringify escapes.
          if (/\\u[dD][89a-fA-F]/.test(text)) return;
          expect(read(text)).toEqual(JSON.parse(text));
          expect(findFaults(text, 32)).toEqual([]);
        },
      ),
    );
  });

  test('parses quotes and backslashes in strings', () => {
    for (const value of ['"', '\\', '\\"', '\\\\":', '":":"', ':', '\\\\\\"', '{"a":1,"a":2}']) {
      expect(read(JSON.stringify({ [value]: value, b: value }))).toEqual({ [value]: value, b: value });
    }
  });

  test('reads keys with backslashes correctly despite a bug in the engine', () => {
    // Reproduces a bug in V8: after the first text, the key `"` of the second text would be read as `\`. No other test
    // may use the key `first of these`, because V8 caches object shapes.
    const said = ['{"first of these": 0, "\\\\": 1}', '{"first of these": 0, "\\"": 2}'];
    expect(said.map((text) => Object.keys(read(text) as object)[1])).toEqual(['\\', '"']);
    expect(refusal('{"\\"": [], "\\\\": 0, "\\"": 1}').errors?.[0]).toMatchObject({ path: '/"', column: 21 });
  });

  test('refuses a duplicate key, and reports its location', () => {
    expect(refusal('{"a": 1,\n "b": {"c": 1, "c": 2}}').errors).toEqual([
      { path: '/b/c', message: 'the key "c" is repeated', line: 2, column: 16 },
    ]);
    expect(refusal('[{"a":1},{"a":1,"\\u0061":1}]').errors?.[0]?.path).toBe('/1/a');
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[a-z"\\:]{1,4}$/), fc.jsonValue(), { minKeys: 1 }), (object) => {
        const key = Object.keys(object)[0]!;
        const text = `${JSON.stringify(object).slice(0, -1)},${JSON.stringify(key)}:0}`;
        expect(refusal(text).errors?.some(({ message }) => message.includes('repeated'))).toBe(true);
      }),
    );
  });

  test('refuses keys that could modify a prototype', () => {
    expect(refusal('{"__proto__": {"admin": true}}').errors?.[0]).toMatchObject({
      path: '/__proto__',
      line: 1,
      column: 2,
    });
    expect(refusal('{"tags": {"\\u005f_proto__": "x"}}').errors?.[0]?.path).toBe('/tags/__proto__');
    expect(refusal('{"constructor": {"prototype": {}}}').errors?.[0]?.path).toBe('/constructor/prototype');
    expect(read('{"constructor": "acme", "prototype": "x"}')).toEqual({ constructor: 'acme', prototype: 'x' });
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('refuses a body with too many fields or list items before it is parsed', () => {
    const list = (length: number) => `[${Array(length).fill('0').join(',')}]`;
    const fields = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":","`).join(',')}}`;
    expect(read(list(40_001))).toHaveLength(40_001);
    expect(Object.keys(read(fields(20_000)) as object)).toHaveLength(20_000);
    const message = 'must have at most 20000 fields, or 40000 list items';
    for (const body of [list(40_002), fields(20_002), `${list(50_000)}"`, `{"\\u0061":${list(50_000)}}`])
      expect(refusal(body)).toMatchObject({ code: 'malformed_json', errors: [{ path: '', message }] });
  });

  test('accepts 32 levels of nesting, refuses 33, and never exhausts the stack', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(read(nested(32))).toBeDefined();
    expect(refusal(nested(33)).errors?.[0]).toMatchObject({ message: 'nests deeper than 32 levels', column: 33 });
    expect(refusal(nested(500_000)).code).toBe('malformed_json');
    expect(refusal('['.repeat(1_000_000)).code).toBe('malformed_json');
    expect(refusal(`"\n${'{"a":'.repeat(200_000)}`).code).toBe('malformed_json');
  });

  test('refuses invalid UTF-8, a byte order mark, and lone surrogates', () => {
    expect(refusal(Buffer.from([0x22, 0xff, 0x22])).message).toMatch(/UTF-8/);
    expect(refusal('\ufeff{}').message).toMatch(/byte order mark/);
    expect(refusal('{"a": "\\ud800"}').errors?.[0]).toMatchObject({ path: '/a', column: 7 });
    expect(refusal('{"\\udc00": 1}').code).toBe('malformed_json');
    expect(refusal('["\\ud800"]').code).toBe('malformed_json');
    expect(read('["\\ud83d\\ude00"]')).toEqual(['😀']);
  });

  test('reports the line and column of syntax errors, and never quotes the body', () => {
    const cases: [string, string, number, number][] = [
      ['{"a": 1', 'the text ends too early', 1, 8],
      ['{"a": 1}\n x', 'nothing may follow the value', 2, 2],
      ["{'a': 1}", 'expected a key in double quotes', 1, 2],
      ['{"a" 1}', 'a colon is missing after the key', 1, 6],
      ['{"a": 1 "b": 2}', 'a comma or } is missing', 1, 9],
      ['[1 2]', 'a comma or ] is missing', 1, 4],
      ['[1,]', 'expected a JSON value', 1, 4],
      ['{"a":1,}', 'expected a key in double quotes', 1, 8],
      ['{"a": /* no */ 1}', 'JSON has no comments', 1, 7],
      ['{"a": "x\n"}', 'the string is not closed on its line', 1, 7],
      ['{"a": "\\q"}', 'JSON has no such escape', 1, 7],
      ['[01]', 'a comma or ] is missing', 1, 3],
      ['[NaN]', 'expected a JSON value', 1, 2],
      ['[secret-word]', 'expected a JSON value', 1, 2],
      ['  ', 'expected a JSON value', 1, 3],
    ];
    for (const [text, message, line, column] of cases) {
      const error = refusal(text);
      expect(error.errors, text).toMatchObject([{ message, line, column }]);
      expect(error.message).toContain(`${message} at line ${line}, column ${column}`);
      expect(error.message).not.toContain('secret-word');
    }
    expect(refusal('').errors).toEqual([{ path: '', message: 'expected a JSON value' }]);
  });

  test('parses or refuses any bytes, and reports a limited number of errors', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.string().map((text) => Buffer.from(text)),
        ),
        (bytes) => {
          try {
            readJson(Buffer.from(bytes));
          } catch (error) {
            expect(error).toBeInstanceOf(MusterError);
            expect((error as MusterError).errors?.length).toBeGreaterThan(0);
          }
        },
      ),
      { numRuns: 500 },
    );
    const many = `{${Array.from({ length: 5000 }, () => '"a":1').join()}}`;
    expect(refusal(many).errors?.length).toBe(100);
  });

  test('refuses numbers outside a schema’s range', () => {
    expect(read('[1e999]')).toEqual([Number.POSITIVE_INFINITY]);
  });
});
