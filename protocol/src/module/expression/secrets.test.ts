import { describe, expect, test } from 'vitest';
import type { AgentFacts } from '../conditions.ts';
import type { Json } from '../document.ts';
import { parseModule } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';
import { compile } from './compile.ts';
import { environment } from './environment.ts';
import { evaluateInPlace, evaluateSole, evaluateText } from './evaluate.ts';
import { Meter } from './meter.ts';
import { passingFunctions } from './secret-flow.ts';
import type { Evaluated } from './text-writer.ts';
import type { Scope } from './variables.ts';

const agent: AgentFacts = {
  name: 'web-1',
  node_id: '0123456789abcdef0123456789abcdef',
  attributes: { platform: 'linux' },
  tags: {},
};

const scopeOf = (parameters: Record<string, Json>): Scope => ({
  agent,
  parameters: new Map(Object.entries(parameters)),
  each: undefined,
  index: undefined,
  meter: new Meter(),
});

const names = ['alpha_secret', 'omega_secret'] as const;

/**
 * Evaluates a string with each of two secrets and replaces their names, so that the results differ only if they depend
 * on the names.
 */
function withBothNames(text: string): Evaluated[] {
  return names.map((name) => {
    const scope = scopeOf({ secret: name });
    const found = [evaluateText(text, scope), evaluateSole(text, 'list', scope), evaluateInPlace(text, scope)];
    return JSON.parse(JSON.stringify(found).replaceAll(name, 'the_secret'));
  });
}

/** Reports whether an expression returns a secret, or a value that contains one. */
function hands(expression: string): boolean {
  const compiled = compile(expression);
  return (
    !('message' in compiled) && evaluateText(`\${{ ${expression} }}`, scopeOf({ secret: names[0] })).kind !== 'fault'
  );
}

const literals: Readonly<Record<string, string>> = {
  string: '"a"',
  bytes: 'b"a"',
  int: '1',
  uint: '1u',
  double: '1.5',
  bool: 'true',
  null: 'null',
  dyn: '"a"',
  A: '"a"',
  type: 'int',
  'google.protobuf.Timestamp': 'timestamp(0)',
  'google.protobuf.Duration': 'duration("1s")',
};
const literalOf = (type: string): string =>
  literals[type] ?? (type.startsWith('list') ? '["a"]' : type.startsWith('map') ? '{"a": "b"}' : '"a"');

/** The functions, methods, and macros that an expression can call, from the library and from Muster. */
const definitions = environment.getDefinitions().functions.filter(({ name }) => name !== 'evaluator_');

const nameOf = ({ name }: { readonly name: string }): string => name.replace(/_$/, '');

/** Returns calls of each function with the given value in place of each of its arguments. */
function callsWith(value: string, functions = definitions): string[] {
  return functions.flatMap(({ name, receiverType, params }) => {
    const called = nameOf({ name });
    const types = params.map(({ type }) => type);
    if (receiverType === 'CelNamespace') return [`cel.bind(v, ${value}, v)`, `cel.bind(v, "a", ${value})`];
    const isMacro = receiverType !== null && types[0] === 'ast' && types.length > 1;
    if (isMacro)
      return [
        `${value}.${called}(v, v)`,
        `${value}.${called}(v, v == ${value})`,
        `["a"].${called}(v, ${value})`,
        `["a"].${called}(v, v == ${value})`,
      ];
    const all = receiverType === null ? types : [receiverType, ...types];
    return all.map((_, position) => {
      const given = all.map((type, index) => (index === position ? value : literalOf(type)));
      return receiverType === null ? `${called}(${given})` : `${given[0]}.${called}(${given.slice(1)})`;
    });
  });
}

const operators = ['+', '-', '*', '/', '%', '==', '!=', '<', '<=', '>', '>=', '&&', '||', 'in'];
const operations = (value: string): string[] => [
  ...operators.flatMap((operator) =>
    ['"a"', '1', 'true', '["a"]', '{"a": 1}', value].flatMap((other) => [
      `${value} ${operator} ${other}`,
      `${other} ${operator} ${value}`,
    ]),
  ),
  `!${value}`,
  `-${value}`,
  `${value} ? "a" : "b"`,
  `true ? ${value} : "b"`,
  `${value}.name`,
  `${value}.constructor`,
  `${value}["name"]`,
  `${value}[0]`,
  `{${value}: 1}`,
  `{"a": 1}[${value}]`,
  `["a"][${value}]`,
  `has(${value}.a)`,
];

const secrets = ['secrets[param.secret]', 'dyn(secret(param.secret))'];
const containers = (value: string): string[] => [value, `[${value}]`, `{"a": ${value}}`, `[[{"a": [${value}]}]]`];
const values = [...secrets.flatMap(containers), 'secrets', 'dyn(secrets)'];

describe('no function or operator reads a secret', () => {
  const direct = [...new Set(values.flatMap((value) => [...callsWith(value), ...operations(value)]))];
  // Functions such as `flatten` return a secret unchanged. Their results are passed through all functions again.
  const handed = direct.filter(hands);

  test('covers every function, those of CEL and those of Muster', () => {
    const called = new Set(definitions.map(({ name }) => name));
    for (const name of ['size', 'string', 'map', 'format', 'shellQuote', 'merge', 'default', 'secret'])
      expect(called).toContain(name);
    expect(direct.length).toBeGreaterThan(3000);
    expect(handed.length).toBeGreaterThan(10);
  });

  // Each of these returns parts of its arguments, and nothing that depends on them.
  const passing = ['bind', 'default', 'dyn', 'entries', 'filter', 'flatten', 'map', 'merge', 'omit', 'values'];

  test('allows only functions that return parts of their arguments to return a secret', () => {
    expect([...passingFunctions].sort()).toEqual(passing);
    const called = new Set(definitions.map(nameOf));
    expect(passing.filter((name) => !called.has(name))).toEqual([]);
  });

  test('refuses a secret, and a list or map with a secret, in every other function', () => {
    const others = definitions.filter((definition) => !passing.includes(nameOf(definition)));
    const accepted = values.flatMap((value) => callsWith(value, others)).filter(hands);
    expect(accepted).toEqual([]);
  });

  test('refuses a secret, and a list or map with a secret, in every operator', () => {
    // These return their operands. The right side of `true ||` is not evaluated.
    const isPassing = (expression: string): boolean =>
      /^true (\?|\|\|) |\[(0|"name")\]$|^(secrets|dyn\(secrets\))\.\w+$/.test(expression);
    const accepted = values.flatMap(operations).filter((expression) => !isPassing(expression) && hands(expression));
    expect(accepted).toEqual([]);
  });

  test.each([
    '[S].exists(s, s == "x")',
    '[S].exists(s, s == "x") || true',
    '["x"].exists(x, [x] == [S])',
    '[S].all(s, s in ["x"])',
    '[S].filter(s, s != "").size() > 0',
    '["x"].map(x, {"a": S} == {"a": x}, x) == []',
    'size([S]) == 1',
    'has(secrets.a)',
    'cel.bind(s, S, s == "x")',
    '[S].map(s, s.startsWith("x"))[0]',
    'sort([S, S])[0] == "x"',
    'default(S, "x") == "x"',
    'type(S) == string',
  ])('refuses the condition %s, which depends on a secret', (condition) => {
    for (const secret of secrets) {
      const found = evaluateText(`\${{ ${condition.replaceAll('S', secret)} ? "a" : "b" }}`, scopeOf({ secret: 's' }));
      expect(found).toMatchObject({ kind: 'fault', message: expect.stringContaining('a secret cannot be') });
    }
  });

  test.each(['s == "x"', '[s] != ["x"]', 's in ["x"]', 'has(s.x)', 'size([s]) == 1', 'type(s) == string'])(
    'refuses a secret in a loop variable that would determine %s',
    (condition) => {
      for (const text of [`\${{ ${condition} }}`, `\${{ if ${condition} }}a\${{ end }}`])
        expect(evaluateText(`\${{ for s in [secrets.a] }}${text}\${{ end }}`, scopeOf({}))).toMatchObject({
          kind: 'fault',
          message: expect.stringContaining('a secret cannot be'),
        });
    },
  );

  test.each([
    'S',
    'param.tls ? S : "x"',
    '{"web-1": S, "web-2": "x"}[agent.name]',
    '["x", S][1]',
    'merge({"a": "x"}, {"a": S}).a',
    'flatten([["x"], [S]])[1]',
    '["x"].map(x, S)[0]',
    'cel.bind(s, S, s)',
  ])('inserts the secret that %s yields', (expression) => {
    for (const secret of secrets)
      expect(
        evaluateText(`\${{ ${expression.replaceAll('S', secret)} }}`, scopeOf({ secret: 's', tls: true })),
      ).toMatchObject({ kind: 'deferred' });
  });

  test('never exposes the name of a secret, and refuses values that depend on it', () => {
    const nested = handed.flatMap((value) => [...callsWith(`(${value})`), ...operations(`(${value})`)]);
    const wrong = [...direct, ...nested].filter((expression) => {
      const [one, other] = withBothNames(`\${{ ${expression} }}`);
      const shown = [one].flat() as unknown as Evaluated[];
      return (
        JSON.stringify(one) !== JSON.stringify(other) ||
        shown.some(({ kind, ...found }) => kind !== 'deferred' && JSON.stringify(found).includes('the_secret'))
      );
    });
    expect(wrong).toEqual([]);
  });

  test('hides the whole field if it contains a secret', () => {
    const texts = ['${{ secrets.a }}', ...handed.map((expression) => `x \${{ ${expression} }}`)];
    const source = {
      name: 'm',
      supports: [{ platform: 'linux' }],
      parameters: { secret: { type: 'string', format: 'secret-name', default: names[0] } },
      resources: texts.map((content, index) => ({ resource: { 'file-unix': { path: `/f${index}`, content } } })),
    };
    const parsed = parseModule(JSON.stringify(source));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    const resolved = resolveDesiredSet({ modules: [parsed.module], agent });
    if (!resolved.ok) throw new Error(JSON.stringify(resolved.faults));
    expect(resolved.secrets).toEqual(expect.arrayContaining(['a', names[0]]));
    for (const { body, deferred, sensitive_fields } of resolved.resources) {
      expect(JSON.stringify(body)).not.toContain(names[0]);
      expect(sensitive_fields).toEqual(deferred.length === 0 ? [] : ['content']);
      if (deferred.length > 0) expect(body.content).toBe('');
    }
  });
});

describe('names of secrets', () => {
  const nameFault = 'the name of a secret consists of letters, digits, "_", and "-", and does not begin with a digit';
  const evaluated = (expression: string, parameters: Record<string, Json> = {}): Evaluated =>
    evaluateText(`\${{ ${expression} }}`, scopeOf(parameters));

  test.each<[string, Json]>([
    ['a number', 1],
    ['a Boolean', true],
    ['a list', ['a']],
    ['a map', { a: 'b' }],
    ['a text with a dot', 'a.b'],
    ['a text with a brace', 'a}}'],
    ['an empty text', ''],
    ['a long text', 'a'.repeat(65)],
    ['a text with a line break', 'a\n'],
  ])('refuses %s as the name of a secret', (_, secret) => {
    for (const expression of ['secrets[param.secret]', 'secret(param.secret)']) {
      const found = evaluated(expression, { secret });
      expect(found.kind, expression).toBe('fault');
    }
    if (typeof secret === 'string')
      expect(evaluated('secret(param.secret)', { secret })).toEqual({ kind: 'fault', message: nameFault });
  });

  test.each(['constructor', 'prototype', '__proto__', 'toString', 'hasOwnProperty', 'get', 'size'])(
    'accepts %s as the name of a secret, although every object has such a member',
    (secret) => {
      const parts = [{ secret, default: null }];
      for (const expression of ['secrets[param.secret]', 'secret(param.secret)', 'dyn(secrets)[param.secret]'])
        expect(evaluated(expression, { secret }), expression).toEqual({ kind: 'deferred', parts });
      expect({}).not.toHaveProperty('polluted');
    },
  );

  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'get', 'size', 'valueOf'])(
    'does not define %s as a variable',
    (name) => {
      expect(evaluated(`string(${name})`).kind).toBe('fault');
      expect(evaluated(`has(${name}.a)`).kind).toBe('fault');
    },
  );

  test('applies the limits of other loops to a loop over secrets', () => {
    const numbers = Array.from({ length: 60_000 }, (_, index) => index);
    const found = evaluated('param.numbers.map(n, secrets["a"])[0]', { numbers });
    expect(found).toMatchObject({ kind: 'fault', message: expect.stringContaining('more work than is allowed') });
    const deep = `${'['.repeat(100)}secrets.a${']'.repeat(100)}`;
    expect(evaluated(deep)).toMatchObject({ kind: 'fault', message: expect.stringContaining('too deep') });
    const inText = evaluateText(
      '${{ for n in param.numbers }}${{ for m in param.numbers }}${{ secrets.a }}${{ end }}${{ end }}',
      {
        ...scopeOf({ numbers: numbers.slice(0, 2000) }),
      },
    );
    expect(inText).toMatchObject({ kind: 'fault', message: expect.stringContaining('more work than is allowed') });
  });

  test('treats the default of a secret as text', () => {
    expect(evaluated('secrets.a | default("x")')).toEqual({
      kind: 'deferred',
      parts: [{ secret: 'a', default: 'x' }],
    });
    for (const other of ['secrets.b', '1', '["x"]'])
      expect(evaluated(`secrets["a"] | default(${other})`)).toEqual({
        kind: 'fault',
        message: 'the default of a secret must be text',
      });
  });
});

describe('parameters that name secrets', () => {
  const moduleWith = (declaration: object, content: string) =>
    parseModule(
      JSON.stringify({
        name: 'm',
        supports: [{ platform: 'linux' }],
        parameters: { secret: declaration },
        resources: [{ id: 'f', resource: { 'file-unix': { path: '/f', content } } }],
      }),
    );
  const format = { type: 'string', format: 'secret-name' };

  test.each(['secrets[param.secret]', 'secret(param.secret)', 'secret(param["secret"])'])(
    'takes the name of a secret from a parameter with format: secret-name: %s',
    (expression) => {
      const parsed = moduleWith(format, `password=\${{ ${expression} }}`);
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
      const resolved = resolveDesiredSet({ modules: [parsed.module], agent, parameters: { m: { secret: 'db' } } });
      expect(resolved).toMatchObject({ ok: true, secrets: ['db'], required_secrets: ['db'] });
      const refused = resolveDesiredSet({ modules: [parsed.module], agent, parameters: { m: { secret: 'd.b' } } });
      expect(refused.ok ? [] : refused.faults[0]?.message).toContain('must be the name of a secret');
    },
  );

  test.each<[string, object]>([
    ['without format', { type: 'string' }],
    ['that is a list', { type: 'list', format: 'secret-name' }],
  ])('refuses a parameter %s', (_, declaration) => {
    const parsed = moduleWith(declaration, '${{ secrets[param.secret] }}');
    expect(parsed).toMatchObject({
      ok: false,
      faults: [
        { message: 'the parameter "secret" names a secret: declare it with { type: string, format: secret-name }' },
      ],
    });
  });
});
