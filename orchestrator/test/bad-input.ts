import type { Route } from '@muster/protocol/http';
import fc from 'fast-check';
import { z } from 'zod';
import { codePoint } from '../../protocol/test/code-point.ts';

/** Requests with one error each, derived from a route's declaration. */

export interface BadRequest {
  /** The error in the request. */
  readonly why: string;
  readonly params?: Readonly<Record<string, string>>;
  /** The query as it appears in the URL. If undefined, the example's query is sent. */
  readonly query?: string;
  readonly payload?: string | Buffer;
  readonly type?: string;
  /**
   * The expected status. If undefined, any 4xx status is accepted, or a success status if the route allows the text.
   */
  readonly status?: number;
  /** The expected JSON pointer of the error. */
  readonly path?: string;
}

interface Shape {
  type?: string | string[];
  anyOf?: Shape[];
  properties?: Record<string, Shape>;
  required?: string[];
  minimum?: number;
}

const shapeOf = (schema: z.ZodType): Shape =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', target: 'draft-2020-12' }) as Shape;

/** Returns the minimum of a number. The default is 0, because most numbers are counts. */
const minimumOf = ({ minimum, anyOf = [] }: Shape): number => Math.min(0, minimum ?? 0, ...anyOf.map(minimumOf));

function typesOf({ type, anyOf = [] }: Shape): string[] {
  return [...(type === undefined ? [] : [type].flat()), ...anyOf.flatMap(typesOf)];
}

const wrongTypes: Readonly<Record<string, unknown>> = {
  string: 'text',
  integer: 7,
  boolean: true,
  array: [7],
  object: { x: 7 },
};
const deep = (levels: number) => `${'{"x":'.repeat(levels)}1${'}'.repeat(levels)}`;

/** A time in the year 10,000. As a number, it also exceeds the maximum of every numeric field. */
const farOut = '253402300800000';
/** Routes that accept numbers of any size. */
const farTaken = new Set(['setAuditRetention']);

/** Returns invalid bodies. Together, they cover every field of every kind. */
export function* badBodies(route: Route): Generator<BadRequest> {
  if (route.method === 'GET') return;
  const example = (route.example.body ?? {}) as Record<string, unknown>;
  const given = (body: unknown) => JSON.stringify(body);
  yield { why: 'not JSON', payload: '{"x":', status: 400 };
  yield { why: 'not UTF-8', payload: Buffer.from([0x22, 0xff, 0x22]), status: 400 };
  for (const body of ['[]', '7', 'null', '"x"'])
    yield { why: `${body} is not an object`, payload: body, status: 400, path: '' };
  yield { why: 'an unknown field', payload: given({ ...example, qwxyz: 1 }), status: 400, path: '/qwxyz' };
  yield { why: '__proto__', payload: '{"__proto__":{"x":1}}', status: 400 };
  yield { why: 'nested too deeply', payload: deep(40), status: 400 };
  yield { why: 'a duplicate key', payload: '{"x":1,"x":2}', status: 400 };
  yield { why: 'another type', payload: given(example), type: 'text/plain', status: 415 };
  yield { why: 'a form', payload: 'a=b', type: 'application/x-www-form-urlencoded', status: 415 };
  const limit = route.bodyLimit ?? 1024 * 1024;
  yield { why: 'a body above the maximum size', payload: `"${'x'.repeat(limit)}"`, status: 413 };
  if (!route.body) return;
  const { properties = {}, required = [] } = shapeOf(route.body);
  for (const name of required) {
    const { [name]: _, ...rest } = example;
    yield { why: `without ${name}`, payload: given(rest), status: 400, path: `/${name}` };
  }
  for (const [name, shape] of Object.entries(properties)) {
    const types = typesOf(shape);
    const put = (value: unknown) => given({ ...example, [name]: value });
    if (types.length > 0)
      for (const [type, value] of Object.entries(wrongTypes))
        if (!types.includes(type) && !(type === 'integer' && types.includes('number')))
          yield { why: `${name} of type ${type}`, payload: put(value), status: 400, path: `/${name}` };
    if (types.includes('string'))
      for (const text of ['x'.repeat(100_000), 'a\u0007b', 'a\nb', ' ', '', '..', 'a/b', '💥', '\ud800'])
        yield { why: `${name} as odd text`, payload: put(text) };
    if (types.includes('integer') || types.includes('number'))
      for (const value of [
        String(minimumOf(shape) - 1),
        ...['1e308', '1.5', '9223372036854775808'],
        ...(farTaken.has(route.id) ? [] : [farOut]),
      ])
        yield {
          why: `${name} as ${value}`,
          payload: given({ ...example, [name]: 0 }).replace(`"${name}":0`, `"${name}":${value}`),
          status: 400,
          path: `/${name}`,
        };
  }
}

/** Returns requests with invalid queries. */
export function* badQueries(route: Route): Generator<BadRequest> {
  const example = new URLSearchParams(route.example.query ?? {}).toString();
  const and = (more: string) => (example === '' ? more : `${example}&${more}`);
  yield { why: 'an unknown parameter', query: and('qwxyz=1'), status: 400, path: '/qwxyz' };
  yield { why: 'a bad escape', query: and('x=%zz'), status: 400, path: '/x' };
  yield { why: 'an incomplete UTF-8 character', query: and('x=%ff'), status: 400, path: '/x' };
  const names = Object.keys(route.query?.shape ?? {});
  for (const name of names) {
    yield { why: `${name} twice`, query: `${name}=1&${name}=1`, status: 400, path: `/${name}` };
    for (const text of ['x'.repeat(5000), '%00', '%07', '-1', '1e9', '', ' ', "';--"])
      yield { why: `${name} as odd text`, query: `${name}=${text.includes('%') ? text : encodeURIComponent(text)}` };
  }
  for (const name of ['limit', 'offset'].filter((name) => names.includes(name)))
    for (const text of ['-1', 'x', '1.5', '', '0x1', '1e3'])
      yield { why: `${name}=${text}`, query: and(`${name}=${text}`), status: 400, path: `/${name}` };
}

/** Yields requests with path parameters for records that do not exist, as they appear in the URL. */
export function* badParams(route: Route): Generator<BadRequest> {
  const names = Object.keys(route.params?.shape ?? {});
  for (const name of names) {
    for (const text of [
      '%00',
      '%07',
      '..%2F..',
      'x'.repeat(5000),
      '%F0%9F%92%A5',
      'constructor',
      '01KAGZ7R3E5F6G7H8J9K0M1N2P',
      'ab'.repeat(16),
      '-1',
      '9'.repeat(30),
    ])
      yield { why: `${name} as ${text.slice(0, 20)}`, params: { [name]: text } };
    yield { why: `${name} with a bad escape`, params: { [name]: '%zz' }, status: 400 };
  }
}

const oddText = fc.oneof(
  fc.constantFrom('web-1', 'm', 'base', 'role=web', 'approved', '..', ' ', '\u0007', '\u0000', '💥', '', '=', '(('),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: codePoint, maxLength: 20 }),
);
const oddValue = fc.oneof(
  oddText,
  fc.constantFrom(0, -1, 1, 1.5, 1e300, 2 ** 53, 2 ** 63, 253_402_300_800, null, true),
  fc.integer(),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Generates requests to a route: either the example with some parts replaced, or an entirely different request. */
export function anyRequest(route: Route) {
  const example = (route.example.body ?? {}) as Record<string, unknown>;
  const fields = [...Object.keys(route.body ? (shapeOf(route.body).properties ?? {}) : {}), 'x', 'constructor'];
  const near = fc
    .dictionary(fc.constantFrom(...fields), oddValue, { maxKeys: 3 })
    .map((changes) => JSON.stringify({ ...example, ...changes }));
  const far = fc.oneof(
    fc.json(),
    fc.string(),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  );
  const names = [...Object.keys(route.query?.shape ?? {}), 'x'];
  const query = fc.dictionary(fc.constantFrom(...names), oddText, { maxKeys: 3 });
  return fc.record({
    payload: route.method === 'GET' ? fc.constant(undefined) : fc.oneof({ weight: 4, arbitrary: near }, far),
    query: fc.option(
      query.map((values) => new URLSearchParams(values).toString()),
      { nil: undefined },
    ),
    /** Replaces a path parameter with the ID of an existing record. */
    param: fc.option(oddText, { nil: undefined }),
  });
}
