import { describe, expect, test } from 'vitest';
import type { AgentFacts } from '../conditions.ts';
import type { Json } from '../document.ts';
import type { Field } from '../kinds/field.ts';
import { environment, replacedCalls, replacedFunctions } from './environment.ts';
import { evaluateSole, evaluateText } from './evaluate.ts';
import { expressionFunctions } from './functions/index.ts';
import { standardFunctions } from './functions/standard.ts';
import { Meter, maximumSteps, maximumStepsOfAgent } from './meter.ts';
import type { Evaluated } from './text-writer.ts';
import type { Scope } from './variables.ts';

const agent: AgentFacts = {
  name: 'web-1',
  node_id: '0123456789abcdef0123456789abcdef',
  attributes: { distro: 'debian', cpus: '4', 'rack.row': 'b', rack: 'x', 'disk.sda.size': '10', 'os/name': 'd' },
  tags: { role: 'web', 'team/name': 'blue', 'site.id': '7' },
};

const scopeOf = (parameters: Record<string, Json> = {}, each?: Json, index?: number): Scope => ({
  agent,
  parameters: new Map(Object.entries(parameters)),
  each,
  index,
  meter: new Meter(),
});

const text = (source: string, scope = scopeOf()): Evaluated => evaluateText(source, scope);
const sole = (source: string, shape: Field['shape'], scope = scopeOf()): Evaluated =>
  evaluateSole(source, shape, scope);
const value = (of: Json): Evaluated => ({ kind: 'value', value: of });
const fault = (message: string): Evaluated => ({ kind: 'fault', message });

test('suggests the correct name for a misspelled variable', () => {
  const message = 'unknown name "tags": did you mean "tag"?; write $${{ for a plain ${{';
  expect(text('${{ tags.role + "x" }}')).toEqual(fault(message));
});

describe('functions', () => {
  const examples = [
    ...expressionFunctions.flatMap(({ examples }) => examples),
    ...standardFunctions.map(({ example }) => example),
  ];

  test.each(examples)('%s yields %s', (expression, result) => {
    expect(text(`\${{ ${expression} | json }}`)).toEqual(value(result));
  });

  test('refuses NUL in a shell word', () => {
    const message = 'shellQuote: the text contains NUL, which no word of a shell can contain';
    expect(text('${{ shellQuote(["a", "b\\u0000c"]) }}')).toEqual(fault(message));
  });

  test('lists every function of the library and of Muster, and no other', () => {
    const inner = [...Object.values(replacedFunctions), ...Object.values(replacedCalls), 'evaluator_'];
    // Calls of these functions are refused as unknown.
    const optional = ['hasValue', 'value', 'none', 'of', 'or', 'orValue'];
    const named = environment.getDefinitions().functions.map(({ name }) => name);
    const documented = [...standardFunctions, ...expressionFunctions].map(({ name }) => name);
    const offered = named.filter((name) => ![...inner, ...optional].includes(name));
    expect([...new Set(documented)].sort()).toEqual([...new Set(offered)].sort());
    for (const name of ['hasValue', 'value', 'orValue'])
      expect(text(`\${{ optional.none().${name}() }}`)).toMatchObject({
        message: expect.stringContaining('unknown function'),
      });
  });

  test('every function except secret has an example', () => {
    expect(expressionFunctions.filter(({ examples }) => examples.length === 0).map(({ name }) => name)).toEqual([
      'secret',
    ]);
  });
});

describe('variables', () => {
  test.each([
    ['${{ agent.name + "." + tag.role }}', 'web-1.web'],
    ['${{ attr["rack.row"] + attr.rack }}', 'bx'],
    ['${{ attr.disk.sda.size + "G" }}', '10G'],
    ['${{ attr["os/name"] + tag["team/name"] + tag.site.id }}', 'dblue7'],
    ['${{ has(attr.nothing) }}', 'false'],
    ['${{ int(attr.cpus) * 2 }}', '8'],
    ['a ${{ {"x": {"y": "}}"}}.x.y }} b', 'a }} b'],
  ])('%s yields %s', (source, expected) => {
    expect(text(source)).toEqual(value(expected));
  });

  test('evaluates `each` and `index` for the current element', () => {
    expect(text('${{ index + 1 }}:${{ each.name + "!" }}', scopeOf({}, { name: 'a' }, 4))).toEqual(value('5:a!'));
  });

  test('does not evaluate the value of an expression again', () => {
    expect(text('${{ param.a + "}}" }}', scopeOf({ a: '${{ agent.name' }))).toEqual(value('${{ agent.name}}'));
  });

  test('reports a missing value, and suggests a correction', () => {
    const instead = 'or give the expression | default("…")';
    const scope = scopeOf({ m: {}, l: [] });
    expect(text('${{ param.a + 1 }}')).toEqual(
      fault(`the parameter "a" has neither value nor default: set it in the assignment, ${instead}`),
    );
    expect(text('${{ attr["a b"] }}')).toEqual(fault(`the agent reports no attribute "a b": fix the name, ${instead}`));
    expect(text('${{ param.m.b }}', scope)).toEqual(
      fault(`the value has no key "b": fix the name, ${instead}, or | omit to leave the field out`),
    );
    expect(text('${{ param.l[3] }}', scope)).toEqual(fault(`the list has no element 3: fix the index, ${instead}`));
  });
});

describe('types', () => {
  test.each<[string, Field['shape'], Json]>([
    ['${{ 1 + 1 }}', 'integer', 2],
    ['${{ attr.cpus + "0" }}', 'integer', 40],
    ['${{ 1 < 2 }}', 'boolean', true],
    ['${{ [1, 2].map(x, x * 2) }}', 'list', ['2', '4']],
    ['${{ {"a": 1, "b": true} }}', 'map', { a: '1', b: 'true' }],
    ['${{ {1: "a"} }}', 'map', { '1': 'a' }],
    ['${{ {"a": omit, "b": 1} }}', 'map', { b: '1' }],
    ['${{ 1.5 }}', 'integer', 1.5],
  ])('%s in a field of type %s yields %j', (source, shape, expected) => {
    expect(sole(source, shape)).toEqual(value(expected));
  });

  test.each([
    ['${{ 1.5 + 1.0 }}', '2.5'],
    ['${{ 9007199254740993 }}', '9007199254740993'],
    ['${{ 18446744073709551615u }}', '18446744073709551615'],
    ['${{ timestamp("2024-01-01T00:00:00Z") }}', '2024-01-01T00:00:00.000Z'],
    ['${{ duration("90s") }}', '90s'],
    ['${{ true }}', 'true'],
    [`\${{ b'{"a": [1]}'.json().a[0] + 1 }}`, '2'],
    [`\${{ bytes('[1, 2.5]').json()[1] }}`, '2.5'],
    ['${{ b"é\\xff€\\n😀".hex() }}', 'c3a9ffe282ac0af09f9880'],
    ["${{ b'''é\\'''\\303\\251'''.hex() }}", 'c3a9272727c3a9'],
    ['${{ b"a" < b"ab" && b"b" > b"ab" && b"ab" >= b"ab" && !(b"ab" <= b"a") }}', 'true'],
    ['${{ "ÄAz".lowerAscii() + "äaZ".upperAscii() }}', 'ÄazäAZ'],
    ['${{ "\u0085\u3000 \ufeffa b\t\u2028".trim() }}', '\ufeffa b'],
    ['${{ " ".trim() + "." }}', '.'],
    ['${{ " a ".trim() + "\ud83dÄZ".lowerAscii().substring(1) }}', 'aÄz'],
    [
      `\${{ b'[9007199254740993, -9223372036854775808, 9007199254740993.0, "é"]'.json().map(x, string(x)).join(" ") }}`,
      '9007199254740993 -9223372036854775808 9007199254740992 é',
    ],
    ['${{ -9223372036854775808 + 1 }}', '-9223372036854775807'],
  ])('converts %s in text to %s', (source, expected) => {
    expect(text(source)).toEqual(value(expected));
  });

  test.each([
    ['${{ b"a" }}', 'the expression yields bytes: convert them with base64(…) or string(…)'],
    ['${{ null }}', 'the expression yields null: add | default("…")'],
    ['${{ [1] }}', 'the expression yields a list, which cannot be used in text without | join("…") or | json'],
    ['${{ {"a": 1} }}', 'the expression yields a map, which cannot be used in text without | json or | yaml'],
    ['a ${{ omit }}', 'omit leaves a whole value out, so it cannot be part of text'],
    ['${{ double("inf") }}', 'the expression yields Infinity, which is not a number that a module can hold'],
    [`\${{ b'{'.json() | json }}`, 'the bytes are not JSON in UTF-8'],
    ['${{ b"\\xff".json() | json }}', 'the bytes are not JSON in UTF-8'],
    [
      `\${{ b'9007199254740993'.json() | json }}`,
      'the number 9007199254740993 is beyond 2^53, so it loses digits: use string(…) for its text',
    ],
    [`\${{ b'[9223372036854775808]'.json()[0] > 0 }}`, 'the number 9223372036854775808 is beyond the largest int'],
    [`\${{ b'1e400'.json() > 0 }}`, 'the JSON has a number that is too large'],
    ['${{ 9223372036854775808 - 1 }}', 'the number 9223372036854775808 is beyond the largest int'],
    ['${{ 0x8000000000000000 > 0 }}', 'the number 9223372036854775808 is beyond the largest int'],
    ['${{ 1 - 9223372036854775808 }}', 'the number 9223372036854775808 is beyond the largest int'],
    ['${{ -9223372036854775809 < 0 }}', 'the number 9223372036854775809 is beyond the largest int'],
    ['${{ -(-9223372036854775807 - 1) }}', 'the number 9223372036854775808 is beyond the largest int'],
    ['${{ (-9223372036854775807 - 1) / -1 == 0 }}', 'the number 9223372036854775808 is beyond the largest int'],
    ['${{ int(1e19) > 0 }}', 'the number 10000000000000000000 is beyond the largest int'],
    ['${{ timestamp("9999-12-31T23:59:59Z") + duration("1s") }}', 'the time is not within the years 1 to 9999'],
    ['${{ timestamp("0001-01-01T00:00:00Z") - duration("1s") }}', 'the time is not within the years 1 to 9999'],
    ['${{ duration("300000000000s") + duration("300000000000s") }}', 'the duration is longer than 10,000 years'],
    ['${{ type(1) }}', 'the expression yields a value that a module cannot hold: convert it with string(…)'],
  ])('refuses %s in text', (source, message) => {
    expect(text(source)).toEqual(fault(message));
  });

  test('refuses a number beyond 2^53 in a field for numbers', () => {
    expect(sole('${{ 9007199254740993 }}', 'integer')).toEqual(
      fault('the number 9007199254740993 is beyond 2^53, so it loses digits: use string(…) for its text'),
    );
  });

  test('`omit` removes a whole value', () => {
    expect(text(' ${{ param.a | omit }}\n')).toEqual({ kind: 'omitted' });
    expect(sole('${{ param.a | omit }}', 'list')).toEqual({ kind: 'omitted' });
    expect(text('${{ param.a | omit }}', scopeOf({ a: 1 }))).toEqual(value('1'));
  });
});

describe('secrets', () => {
  const secretFault =
    'a secret cannot be the argument of a function or an operator: insert it into text as ${{ secrets.NAME }}';

  test('inserts secrets later, by constant and computed names', () => {
    const scope = scopeOf({ tls: true }, { secret: 'db' });
    expect(text('a ${{ secrets[each.secret] }} ${{ param.tls ? secrets.key : "" }}', scope)).toEqual({
      kind: 'deferred',
      parts: [{ text: 'a ' }, { secret: 'db', default: null }, { text: ' ' }, { secret: 'key', default: null }],
    });
    expect(text('${{ secret(each.secret) | default("x") }}', scope)).toEqual({
      kind: 'deferred',
      parts: [{ secret: 'db', default: 'x' }],
    });
  });

  test.each([
    [
      'the name of a secret consists of letters, digits, "_", and "-", and does not begin with a digit',
      'secrets["a b"]',
    ],
    ['a secret cannot be part of a value: insert it into text as ${{ secrets.NAME }}', '[secrets.a].map(x, x)'],
    ['must be one expression, without a secret', 'secrets.a'],
  ])('refuses an expression with the message %s', (message, expression) => {
    expect(sole(`\${{ ${expression}${expression === 'secrets.a' ? ' | default("")' : ''} }}`, 'list')).toEqual(
      fault(message),
    );
  });

  test('refuses a secret as the operand of an operator or a function, and suggests a correction', () => {
    expect(text('${{ secrets.s + "a" }}')).toEqual(fault(secretFault));
    expect(text('${{ base64(secrets.s) }}')).toEqual(fault(secretFault));
    for (const compared of ['secrets.s == "a"', '"a" != secret("s")', 'default(secrets["s"], "") in ["a"]'])
      expect(text(`\${{ ${compared} ? "yes" : "no" }}`), compared).toEqual(fault(secretFault));
  });
});

describe('hostile expressions', () => {
  const long = 'x'.repeat(1_000_000);
  const numbers = Array.from({ length: 5000 }, (_, index) => index);
  const nest = (levels: number, inner: string): string =>
    levels === 0 ? inner : `[1,2,3,4,5,6,7,8,9,10].map(v${levels}, ${nest(levels - 1, inner)})`;
  const doubled = (levels: number, name = 'param.long'): string =>
    levels === 0 ? `size(${name})` : `cel.bind(b${levels}, ${name} + ${name}, ${doubled(levels - 1, `b${levels}`)})`;
  const expressions: Record<string, string> = {
    'nested loops': nest(8, '1'),
    'nested loops in a quantifier, which ignores errors': `[1, 2].exists(x, size(${nest(8, '1')}) == 0) || true`,
    'nested loops below or': `size(${nest(8, '1')}) == 0 || true`,
    'nested loops below default': `default(${nest(8, '1')}, 1)`,
    'doubled text': doubled(12),
    'doubled list': doubled(12, 'param.numbers'),
    'each with each': 'param.numbers.all(x, x in param.numbers)',
    'equal lists': 'param.numbers.all(x, param.numbers == param.numbers)',
    'time zones': 'param.numbers.map(x, timestamp("2024-01-01T00:00:00Z").getHours("Europe/Paris"))',
    hashes: 'param.numbers.map(x, sha256(param.long))',
    'a pattern for each': 'param.numbers.map(x, ("a" + string(x)).matches("(a+)+$" + string(x)))',
    'a catastrophic pattern': 'param.long.matches("(x+x+)+y")',
    'counted repetitions': 'param.long.matches("(x{1,900}){1,900}y")',
    sort: 'param.numbers.map(x, sort(param.numbers))',
    unique: 'param.numbers.map(x, unique(param.numbers))',
    yaml: 'param.numbers.map(x, yaml(param.numbers))',
    'a part that nearly matches everywhere': 'param.long.lastIndexOf(param.long.substring(500000) + "y")',
    'such a separator': 'size(param.long.split(param.long.substring(500000) + "y"))',
    'such a part, replaced': 'param.long.replace(param.long.substring(500000) + "y", "")',
  };

  const most = 1_000_000;
  const values: Record<string, Json> = {
    long,
    numbers,
    many: Array.from({ length: 10_000 }, (_, index) => index),
    two: numbers.slice(0, 2000),
    one: numbers.slice(0, 1200),
    lists: `[${'[],'.repeat(15_000)}1]`,
    maps: `[${'{"a":1},'.repeat(10_000)}1]`,
    digits: `[${'9007199254740993,'.repeat(5000)}1]`,
    string: JSON.stringify('"'.repeat(most / 2)),
    mixed: 'AÄ'.repeat(most / 2),
    blanks: ' '.repeat(most),
    mark: 'x'.repeat(most / 2),
    marked: `${' '.repeat(most / 4)}\ufeff`,
  };
  const again = (expression: string): string => `[1, 2, 3, 4, 5, 6, 7, 8, 9].map(again, ${expression}).size()`;

  /** Expressions with their results. Their work is just within the limit, or their functions are slow. */
  const allowed: Record<string, readonly [expression: string, result: string]> = {
    additions: ['param.numbers.map(x, x + 1).size()', '5000'],
    'a list without repeated elements': ['size(unique(param.many))', '10000'],
    'lists without repeated elements': ['unique(param.two.map(x, [x])).size()', '2000'],
    'merged maps': ['param.one.map(x, merge({"a": 1}, {"b": x})).size()', '1200'],
    'shell words': ['param.two.map(x, shellQuote(string(x))).size()', '2000'],
    addresses: ['param.two.map(x, cidrHost("10.0.0.0/8", x)).size()', '2000'],
    formats: ['param.two.map(x, "%d %s".format([x, x])).size()', '2000'],
    toml: ['param.one.map(x, toml({"a": x})).size()', '1200'],
    versions: ['param.one.map(x, version("1.2.3") < "1.2.4").size()', '1200'],
    'JSON of lists': ['size(bytes(param.lists).json())', '15001'],
    'JSON of maps': ['size(bytes(param.maps).json()) - 1', '10000'],
    'JSON of long numbers': ['size(bytes(param.digits).json())', '5001'],
    'JSON of text': ['bytes(param.string).json() != "x"', 'true'],
    'letters beyond ASCII': ['param.mixed.lowerAscii().startsWith("aÄa")', 'true'],
    letters: ['param.long.upperAscii().startsWith("XX")', 'true'],
    blanks: ['size(param.blanks.trim())', '0'],
    'blanks with a mark': ['size(param.marked.trim())', '1'],
    'bytes in order': ['bytes(param.mark) < bytes(param.mark)', 'false'],
  };
  /** Expressions that repeat a slow function until the limit stops them. */
  const stopped: Record<string, string> = {
    ...expressions,
    'repeated lower case': again('param.mixed.lowerAscii()'),
    'repeated trimming': again('param.blanks.trim()'),
    'repeated trimming with a mark': again('param.marked.trim()'),
    'repeated JSON': again('bytes(param.lists).json()'),
    'repeated JSON of maps': again('bytes(param.maps).json()'),
    'repeated JSON of text': again('bytes(param.string).json()'),
    'repeated order of bytes': again('bytes(param.long) < bytes(param.long)'),
    'all merged maps': 'param.many.map(x, merge({"a": 1}, {"b": x}))',
    'all addresses': 'param.many.map(x, cidrHost("10.0.0.0/8", x))',
    'all shell words': 'param.many.map(x, shellQuote(string(x)))',
    'all formats': 'param.many.map(x, "%d %s".format([x, x]))',
    'all tables of TOML': 'param.many.map(x, toml({"a": x}))',
    'all versions': 'param.many.map(x, version("1.2.3") < "1.2.4")',
    'all different lists': 'unique(param.many.map(x, [x]))',
  };

  /** Returns the processor time of a call in milliseconds. The kernel counts in units of 4 ms. */
  const timeOf = (call: () => void): number => {
    const runs = 5;
    const before = process.threadCpuUsage();
    for (let run = 0; run < runs; run += 1) call();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000 / runs;
  };

  /** Does work that takes about 5 ms on an idle machine and does not depend on the evaluator. */
  const yardstick = (): void => {
    const found = new Map<string, { value: bigint }>();
    for (let index = 0; index < 40_000; index += 1) found.set(`key ${index}`, { value: BigInt(index) + 1n });
    if (found.size !== 40_000) throw new Error('the yardstick is wrong');
  };

  /** Returns how much of the allowed time an expression takes: 5 ms, or twice that on a slow or busy machine. */
  const excessOf = (expression: string): number => {
    const source = `\${{ ${expression} }}`;
    let excess = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < 8 && excess > 1; attempt += 1) {
      const time = timeOf(() => void text(source, scopeOf(values)));
      excess = Math.min(excess, time / Math.max(5, 2 * timeOf(yardstick)));
    }
    return excess;
  };

  test.each(Object.entries(allowed))('evaluates %s within the limit of processor time', (_, [expression, result]) => {
    expect(text(`\${{ ${expression} }}`, scopeOf(values))).toEqual(value(result));
    expect(excessOf(expression)).toBeLessThanOrEqual(1);
  });

  test.each(Object.entries(stopped))('stops %s within the limit of processor time', (_, expression) => {
    expect(text(`\${{ ${expression} }}`, scopeOf(values))).toEqual(
      fault('the expression does more work than is allowed (5 ms): shorten its lists and texts'),
    );
    expect(excessOf(expression)).toBeLessThanOrEqual(1);
  });

  test('refuses JSON that is nested too deeply', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    const scope = scopeOf({ deep: nested(20_000), allowed: nested(1000) });
    expect(text('${{ size(bytes(param.deep).json()) }}', scope)).toEqual(
      fault('the JSON has more than 1000 levels of lists and maps'),
    );
    expect(text('${{ size(bytes(param.allowed).json()) }}', scope)).toEqual(value('1'));
  });

  test.each(Object.entries(expressions))('stops %s at the cost limit', (_, expression) => {
    const meter = new Meter();
    const spent = { steps: 0 };
    const spend = meter.spend.bind(meter);
    meter.spend = (steps) => {
      spent.steps += Math.min(steps, maximumSteps);
      spend(steps);
    };
    const scope = { ...scopeOf({ long, numbers }), meter };
    const found = text(`\${{ ${expression} }}`, scope);
    expect(found.kind === 'fault' ? found.message : found).toMatch(/more work than is allowed \(5 ms\)/);
    // The step that exceeds the limit is counted before it runs. Operators that ignore errors add a few more steps.
    expect(spent.steps).toBeLessThan(4 * maximumSteps);
  });

  test.each([
    ['"ab".replace("", param.long)', 'replace yields more than 1 MiB: shorten the text'],
    ['["a", "b", "c"].join(param.long)', 'join yields more than 1 MiB: shorten the list'],
    ['"%s%s".format([param.long, param.long])', 'format yields more than 1 MiB: shorten the values'],
    ['json(param.deep, 8)', 'json yields more than 1 MiB: shorten the value or its indent'],
    ['param.long + param.long', 'the expression yields more than 1 MiB: shorten the value'],
    ['duration(param.long)', 'a duration has at most 40 characters'],
    [`"a".matches("${'a'.repeat(501)}")`, 'a regular expression has at most 500 characters'],
    ['"a".matches("(?=a)")', '"(?=a)" is not an RE2 regular expression'],
  ])('refuses %s', (expression, message) => {
    const deep = Array.from({ length: 600 }).reduce<Json>((inner) => [inner], []);
    expect(text(`\${{ ${expression} }}`, scopeOf({ long: long.slice(0, 600_000), deep }))).toEqual(fault(message));
  });

  test('takes linear time for a path that consists of slashes', () => {
    const slashes = '/'.repeat(900_000);
    const scope = scopeOf({ path: `${slashes}x` });
    expect(text('${{ basename(param.path) + string(size(dirname(param.path))) }}', scope)).toEqual(value('x899999'));
    expect(text('${{ basename(param.path) + dirname(param.path) }}', scopeOf({ path: slashes }))).toEqual(value('/'));
  });

  test('refuses a text that inserts more than 32 MiB without CEL', () => {
    const found = text('${{ param.long }}'.repeat(600), scopeOf({ long }));
    expect(found).toEqual(fault('the text has more than 32 MiB: insert shorter values'));
  });

  test('limits the total cost of an agent’s expressions', () => {
    const scope = scopeOf({ numbers });
    const loop = '${{ param.numbers.map(x, x + 1).size() }}';
    let found = text(loop, scope);
    for (let again = 0; again < maximumStepsOfAgent && found.kind === 'value'; again += 1) found = text(loop, scope);
    expect(found).toEqual(
      fault('the expressions of the agent together do more work than is allowed (100 ms): shorten the lists'),
    );
  });

  test('treats keys such as constructor as ordinary keys', () => {
    const scope = scopeOf({ m: JSON.parse('{"constructor": "c", "__proto__": "p", "toString": "t"}') });
    expect(text('${{ param.m.constructor + param.m["__proto__"] + param.m.toString }}', scope)).toEqual(value('cpt'));
    for (const name of ['constructor', 'prototype', 'toString', 'hasOwnProperty']) {
      for (const owner of ['attr', 'tag', 'param', 'agent', '{"a": 1}', '"a"', '[1]']) {
        expect(text(`\${{ string(${owner}.${name}) }}`).kind).toBe('fault');
      }
    }
    expect({}).not.toHaveProperty('polluted');
  });

  test('refuses a value of the wrong type', () => {
    const scope = scopeOf({ a: [], s: 'x', n: 1, b: true, m: {} });
    for (const wrong of [
      'param.a + 1',
      'param.s * 2',
      'param.n && true',
      '!param.s',
      'param.m < 1',
      'param.s.map(x, x)',
      'param.n.size()',
      'param.b ? param.s.a : 1',
      'sort([1, "a"])',
      'param.s ? 1 : 2',
    ])
      expect(text(`\${{ ${wrong} }}`, scope).kind, wrong).toBe('fault');
  });
});
