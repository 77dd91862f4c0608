import { expect, test } from 'vitest';
import { fillSecrets, fillVerifications, SecretBudget, type UnfilledResource } from './secrets.ts';

const mebibyte = 1024 * 1024;

/** Returns a file that inserts a secret several times. */
const file = (id: string, times: number, fallback: string | null = null): UnfilledResource => ({
  key: `path:/${id}`,
  identity: `/${id}`,
  module: 'm',
  id,
  name: null,
  type: 'file-unix',
  body: { path: `/${id}`, content: '' },
  deferred: [{ path: ['content'], parts: Array.from({ length: times }, () => ({ secret: 's', default: fallback })) }],
  sensitive_fields: ['content'],
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
});
const tooMany = 'the secrets of the operation exceed 15 MiB: insert large secrets less often';

test('reports a single error if secrets exceed the limit of an operation', () => {
  const large = () => 'x'.repeat(mebibyte);
  const filled = fillSecrets([file('a', 14), file('b', 14), file('c', 14)], large);
  expect(filled).toEqual({
    ok: false,
    faults: [{ path: '/modules/m/b/content', message: `path:/b of module m: ${tooMany}` }],
  });
});

test('counts bytes of JSON, and counts each use of a secret', () => {
  // An escaped character takes 6 bytes.
  expect(fillSecrets([file('a', 3)], () => '\u0001'.repeat(mebibyte)).ok).toBe(false);
  expect(fillSecrets([file('a', 3)], () => 'x'.repeat(mebibyte)).ok).toBe(true);
});

test('does not count defaults, which the stored desired state contains', () => {
  const filled = fillSecrets([file('a', 16, 'x'.repeat(mebibyte))], () => undefined);
  expect(JSON.stringify(filled)).not.toContain(tooMany);
});

test('applies one limit to resources and checks together', () => {
  const budget = new SecretBudget();
  const large = () => 'x'.repeat(mebibyte);
  expect(fillSecrets([file('a', 14)], large, budget).ok).toBe(true);
  const deferred = [
    {
      path: ['command'],
      parts: [
        { secret: 's', default: null },
        { secret: 's', default: null },
      ],
    },
  ];
  const verify = [{ module: 'm', type: 'command' as const, body: { command: '' }, deferred }];
  expect(fillVerifications(verify, large, budget)).toMatchObject({
    ok: false,
    faults: [{ message: expect.stringContaining(tooMany) }],
  });
});
