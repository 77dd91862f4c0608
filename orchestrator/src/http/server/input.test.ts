import { MusterError } from '@muster/protocol';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readInput } from './input.ts';

const schema = z.strictObject({
  username: z.string(),
  role: z
    .enum(['admin', 'operator'])
    .nullish()
    .transform((role) => role ?? undefined),
  limits: z.array(z.strictObject({ cpu: z.number().int() })).optional(),
  tags: z.record(z.string(), z.string()).optional(),
});

function refusal(value: unknown, part: 'body' | 'query' = 'body'): MusterError {
  try {
    readInput(schema, value, part);
  } catch (error) {
    if (error instanceof MusterError) return error;
  }
  throw new Error('was taken');
}

describe('readInput', () => {
  test('returns the value that the schema produces', () => {
    expect(readInput(schema, { username: 'ada', role: null }, 'body')).toEqual({ username: 'ada', role: undefined });
  });

  test('reports each error with its pointer, and suggests the nearest unused name for an unknown field', () => {
    const error = refusal({ usernam: 'ada', limits: [{ cpu: 1, cpus: 2 }, { cpu: 1.5 }], tags: { 'a/b~c': 1 } });
    expect(error.code).toBe('invalid_input');
    expect(Object.fromEntries(error.errors!.map(({ path, message }) => [path, message]))).toEqual({
      '/usernam': 'unknown field: did you mean "username"?',
      '/username': 'is required',
      '/limits/0/cpus': 'unknown field',
      '/limits/1/cpu': expect.stringMatching(/int/),
      '/tags/a~1b~0c': 'expected string, received number',
    });
    expect(error.message).toMatch(/^The body is not valid: .*; and 4 more\.$/);
    expect(refusal({ username: 'ada', rle: 'admin' }, 'query').errors?.[0]?.message).toBe(
      'unknown parameter: did you mean "role"?',
    );
  });

  test('explains bounds and choices in plain English, and keeps the schema’s own messages', () => {
    const bounds = z.strictObject({
      long: z.string().max(3),
      short: z.string().min(1),
      own: z.string().min(1, 'must not be empty'),
      list: z.array(z.string()).max(1),
      high: z.number().int().max(9),
      low: z.number().int().min(1),
      role: z.enum(['admin', 'operator']),
      channel: z.discriminatedUnion('type', [
        z.strictObject({ type: z.literal('slack') }),
        z.strictObject({ type: z.literal('ntfy') }),
      ]),
    });
    const value = { long: 'abcd', short: '', own: '', list: ['a', 'b'], high: 10, low: 0, role: 'root' };
    try {
      readInput(bounds, { ...value, channel: { type: 'mail' } }, 'body');
      expect.unreachable();
    } catch (error) {
      const { errors } = error as MusterError;
      expect(Object.fromEntries(errors!.map(({ path, message }) => [path, message]))).toEqual({
        '/long': 'must have at most 3 characters',
        '/short': 'must have at least 1 character',
        '/own': 'must not be empty',
        '/list': 'must have at most 1 item',
        '/high': 'must be at most 9',
        '/low': 'must be at least 1',
        '/role': 'must be one of admin, operator',
        '/channel/type': 'must be one of slack, ntfy',
      });
    }
  });

  test('refuses a value that is not an object, and names the part of the request that contains it', () => {
    for (const value of [null, [], 'x', 1]) expect(refusal(value).errors?.[0]?.path).toBe('');
  });

  test('never quotes values, and limits the number of errors', () => {
    const error = refusal({ username: 5, role: 'hunter2-secret' });
    expect(JSON.stringify([error.message, error.errors])).not.toContain('hunter2');
    const unknown = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`field${at}`, 1]));
    expect(refusal({ username: 'ada', ...unknown }).errors).toHaveLength(100);
    const long = refusal({ username: 'ada', ['x'.repeat(100_000)]: 1 });
    expect(JSON.stringify(long.errors).length).toBeLessThan(1000);
  });

  test('treats property names of Object.prototype as unknown fields', () => {
    const hostile = JSON.parse('{"username":"ada","toString":1,"__proto__":1}') as unknown;
    expect(
      refusal(hostile)
        .errors?.map(({ path }) => path)
        .sort(),
    ).toEqual(['/__proto__', '/toString']);
    expect(refusal({ toString: 1 }).errors?.map(({ path }) => path)).toContain('/username');
  });
});
