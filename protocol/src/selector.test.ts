import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isEmpty, matchesSelector, parseSelector } from './selector.ts';
import { tagKeySchema, tagValueSchema } from './tag.ts';

const labels = {
  tags: { role: 'web', env: 'prod', 'team/name': 'blue sky', empty: '', canary: 'yes', in: 'x' },
  attributes: { distro: 'debian', 'net.eth0.ip': '10.0.0.1', role: 'other' },
};

function matches(text: string): boolean {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new Error(`${parsed.fault.column}: ${parsed.fault.message}`);
  return matchesSelector(parsed.selector, labels);
}

function fault(text: string): string {
  const parsed = parseSelector(text);
  return parsed.ok ? 'parsed' : `${parsed.fault.column} ${parsed.fault.message}`;
}

describe('selectors that match', () => {
  test.each([
    'role=web',
    'role=web env=prod',
    '  role=web\t env=prod ',
    'role!=db',
    'absent!=x',
    'role in (web,db)',
    'role in ( db , web )',
    'role in(web)',
    'env notin (test,dev)',
    'absent notin (a)',
    'canary',
    '!absent',
    'canary !absent role=web',
    'attr.distro=debian',
    'attr.net.eth0.ip=10.0.0.1',
    'attr.role=other role=web',
    '!attr.version',
    'team/name="blue sky"',
    "team/name='blue sky'",
    'team/name in ("blue sky", x)',
    'empty=""',
    'empty',
    'in=x',
    'in in (x)',
    'canary in=x',
    '',
    '   ',
  ])('matches the agent with the selector %s', (text) => {
    expect(matches(text)).toBe(true);
  });
});

describe('selectors that do not match', () => {
  test.each([
    'role=db',
    'role=web env=test',
    'role!=web',
    'role in (a,b)',
    'absent in (a)',
    'role notin (web)',
    'absent',
    '!canary',
    'absent=""',
    'attr.role=web',
    'distro=debian',
    'constructor',
    'role=Web',
    'attr.__proto__',
  ])('does not match the agent with the selector %s', (text) => {
    expect(matches(text)).toBe(false);
  });
});

describe('an error in a selector contains its column:', () => {
  test.each([
    ['role=', '6 expected a value, not the end; the empty value is written ""'],
    ['role= web', '6 expected a value, not " "; the empty value is written ""'],
    ['=web', '1 expected a key, not "="'],
    ['role=web,env=prod', '9 unexpected ",": put a space between terms'],
    ['role==web', '6 expected a value, not "="; the empty value is written ""'],
    ['role=a=b', '7 unexpected "=": put a space between terms'],
    ['role = web', '6 expected a key, not "="'],
    ['role in web', '9 expected "(" after in, not "w": key in (a,b)'],
    ['role in', '8 expected "(" after in, not the end: key in (a,b)'],
    ['role in ()', '10 expected a value, not ")"; the empty value is written ""'],
    ['role in (a', '11 expected "," or ")", not the end'],
    ['role in (a b)', '12 expected "," or ")", not "b"'],
    ['role notin (a,)', '15 expected a value, not ")"; the empty value is written ""'],
    ['in (a)', '1 "in" requires a key before it: key in (a,b)'],
    ['!', '2 expected a key, not the end'],
    ['! role', '2 expected a key, not " "'],
    ['!role=web', '6 unexpected "=": put a space between terms'],
    [
      '1role=web',
      '1 "1role" is not a valid key: a tag key has 1 to 63 letters, digits, ".", "_", "-", or "/", and begins with a letter',
    ],
    ['a="b', '3 the quoted value is not closed'],
    ['a="b"c', '6 unexpected "c": put a space between terms'],
    ['attr.=x', '1 expected the name of an attribute after "attr."'],
    ['a="b\nc"', '3 a value has at most 256 characters and no control characters'],
    ['rôle=web', '2 unexpected "ô": put a space between terms'],
    [`a=${'b'.repeat(257)}`, '3 a value has at most 256 characters and no control characters'],
    ['a'.repeat(5000), '4097 a selector has at most 4096 characters'],
  ])('reports the column and the error in the selector %j', (text, message) => {
    expect(fault(text)).toBe(message);
  });
});

describe('selectors', () => {
  test('recognizes a selector without terms as empty', () => {
    const empty = (text: string) => {
      const parsed = parseSelector(text);
      return parsed.ok && isEmpty(parsed.selector);
    };
    expect(empty(' \n')).toBe(true);
    expect(empty('a')).toBe(false);
  });

  test('parses a selector for any valid tag and matches that tag', () => {
    const key = fc.stringMatching(/^[A-Za-z][A-Za-z0-9._/-]{0,62}$/).filter((text) => !text.startsWith('attr.'));
    const value = fc
      .string({ maxLength: 256, unit: 'grapheme' })
      .filter((text) => tagValueSchema.safeParse(text).success);
    fc.assert(
      fc.property(key, value, value, (name, stored, other) => {
        expect(tagKeySchema.safeParse(name).success).toBe(true);
        const quoted = `"${stored.replace(/[\\"]/g, '\\$&')}"`;
        const check = (text: string, tags: Record<string, string>): boolean => {
          const parsed = parseSelector(text);
          return parsed.ok && matchesSelector(parsed.selector, { tags, attributes: {} });
        };
        expect(check(`${name}=${quoted}`, { [name]: stored })).toBe(true);
        expect(check(`${name}=${quoted}`, { [name]: other })).toBe(stored === other);
        expect(check(`${name}!=${quoted}`, { [name]: other })).toBe(stored !== other);
        expect(check(`${name} in (x, ${quoted})`, { [name]: stored })).toBe(true);
        expect(check(`${name} notin (${quoted})`, { [name]: stored })).toBe(false);
      }),
    );
  });

  test('parses any text without throwing', () => {
    const pieces = fc.constantFrom('a', '=', '!', ' ', '(', ')', ',', '"', "'", '\\', 'in', 'notin', 'attr.', '1');
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 20 }), (parts) => {
        const text = parts.join('');
        const parsed = parseSelector(text);
        if (parsed.ok) return;
        expect(parsed.fault.column).toBeGreaterThan(0);
        expect(parsed.fault.column).toBeLessThanOrEqual(text.length + 1);
      }),
    );
  });
});

describe('tags', () => {
  test('refuses invalid tag keys and values', () => {
    const key = (text: string) => tagKeySchema.safeParse(text).success;
    const value = (text: string) => tagValueSchema.safeParse(text).success;
    expect([key('a'), key('a.b_c-d/e9'), key('a'.repeat(63))]).toEqual([true, true, true]);
    expect([key(''), key('9a'), key('a b'), key('a'.repeat(64)), key('é'), key('a\n')]).toEqual(Array(6).fill(false));
    expect([value(''), value('ü x'), value('😀'.repeat(256))]).toEqual([true, true, true]);
    expect([value('a\tb'), value('a'.repeat(257)), value('\u0085')]).toEqual([false, false, false]);
  });
});
