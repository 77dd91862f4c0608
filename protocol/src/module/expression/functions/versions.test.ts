import { describe, expect, test } from 'vitest';
import { evaluateText } from '../evaluate.ts';
import { Meter } from '../meter.ts';
import type { Evaluated } from '../text-writer.ts';
import type { Scope } from '../variables.ts';

const scope = (): Scope => ({
  agent: { name: 'web-1', node_id: 'a', attributes: { version: '12.5' }, tags: {} },
  parameters: new Map(),
  each: undefined,
  index: undefined,
  meter: new Meter(),
});
const evaluated = (expression: string): Evaluated => evaluateText(`\${{ ${expression} }}`, scope());

describe('version', () => {
  test.each([
    'version("1.10") > version("1.9")',
    'version(attr.version) >= "12.5" && version(attr.version) < "13"',
    '"12.4" < version(attr.version) && "12.5" >= version(attr.version)',
    'attr.version == version("12.05") && attr.version != version("12.6")',
    'version("1:0.9-1") > "9.9-1" && version("1.0~rc1") < "1.0"',
    'version("5.14.0-427.el9", "rpm") >= "5.14.0" && version("5.14.0-427.el9", "rpm") > "5.14.0-70.el9"',
    'version("1:1.0", "rpm") > "2.0" && version("2_0", "rpm") == "2.0"',
    'version("1.0^git1", "rpm") < "1.0.1" && version("1.0^git1") > "1.0.1"',
    '["1.10", "1.9"].filter(v, version(v) > "1.9") == ["1.10"]',
    'string(version("1.2-3")) == "1.2-3"',
  ])('compares versions: %s', (expression) => {
    expect(evaluated(expression)).toEqual({ kind: 'value', value: 'true' });
  });

  test.each([
    ['version("") < "1"', '"" is not a version'],
    ['version("1 2") < "1"', 'without spaces'],
    ['version("1") < "1 2"', '"1 2" is not a version'],
    [`version("1${'.1'.repeat(200)}") < "1"`, '1 to 256 characters'],
    ['version("1", "npm") < "1"', 'there is no order "npm" of versions: write "deb" or "rpm"'],
    ['version("1", "rpm") < version("1")', 'give both the same order'],
    ['version(12) < "13"', 'write version(text)'],
    ['version(attr.version)', 'convert it with string(…)'],
  ])('refuses %s, and suggests a correction', (expression, message) => {
    expect(evaluated(expression)).toEqual({ kind: 'fault', message: expect.stringContaining(message) });
  });

  test('limits the cost of version comparisons', () => {
    const long = `"${'1.'.repeat(127)}1"`;
    const numbers = `[${Array.from({ length: 400 }, (_, index) => index).join(',')}]`;
    expect(evaluated(`${numbers}.all(n, version(${long}) >= version(${long}))`)).toEqual({
      kind: 'fault',
      message: expect.stringContaining('more work than is allowed'),
    });
  });
});
