import { describe, expect, test } from 'vitest';
import { agentMessageSchema } from './agent-message.ts';
import { readHelloProof } from './hello-proof.ts';

const hello = {
  type: 'hello',
  versions: [1],
  agent_version: '0.1.0',
  public_key: '00'.repeat(32),
  signature: '00'.repeat(64),
  instance_id: '00'.repeat(16),
  pin_source: 'pinned',
  hostname: 'host',
  token: null,
  attributes: { platform: 'linux' },
  open_operations: [],
};
const many = Array.from({ length: 4_200 }, (_, at) => at);
const badKeys = (count: number) =>
  Object.fromEntries(many.slice(0, count).map((at) => [`${'x'.repeat(200)}${at}`, at]));

describe('reports one error of a hostile message that has many', () => {
  test.each([
    ['more attributes than allowed', { ...hello, attributes: Object.fromEntries(many.map((at) => [`${at}`, at])) }],
    ['attributes with bad keys', { ...hello, attributes: badKeys(512) }],
    [
      'attributes with bad values',
      { ...hello, attributes: Object.fromEntries(many.slice(0, 512).map((at) => [`${at}`, at])) },
    ],
    ['more versions than allowed', { ...hello, versions: many.map(() => 'x') }],
    ['more open operations than allowed', { ...hello, open_operations: many.map(() => ({})) }],
    ['earlier statements of no shape', { ...hello, earlier_statements: many.map(() => ({})) }],
    ['open operations of no shape', { ...hello, open_operations: many.slice(0, 64).map(() => ({})) }],
    ['changed attributes', { type: 'attributes', attributes: badKeys(512) }],
    ['reports of no shape', { type: 'report', seq: 1, reports: many.slice(0, 64).map(() => ({})) }],
    ['samples of no shape', { type: 'metrics', samples: many.map(() => ({})) }],
    ['drift hints', { type: 'drift_hint', keys: many }],
  ])('reports only the first error in %s', (_, message) => {
    expect(agentMessageSchema.safeParse(message).error?.issues).toHaveLength(1);
  });
});

test('reports the path of an error', () => {
  const message = { ...hello, open_operations: [{ operation_id: '0'.repeat(26), state: 'x' }] };
  expect(agentMessageSchema.safeParse(message).error?.issues[0]?.path).toEqual(['open_operations', 0, 'state']);
});

test('accepts the largest valid hello', () => {
  const attributes = Object.fromEntries(many.slice(0, 512).map((at) => [`k${at}`, 'v']));
  const open_operations = many.slice(0, 64).map(() => ({ operation_id: '0'.repeat(26), state: 'running' }));
  const message = { ...hello, versions: many.slice(1, 17), attributes, open_operations };
  expect(agentMessageSchema.parse(message)).toEqual(message);
});

describe('hello proof', () => {
  test('reads the proof in a hello without reading the other fields', () => {
    const { public_key, signature, versions } = hello;
    const broken = { ...hello, agent_version: 'a b', attributes: 1, more: 2 };
    expect(readHelloProof(broken)).toEqual({ public_key, signature, versions, agent_version: null });
  });

  test.each([
    [null, 'a message of no known type before the hello'],
    [{ type: 'bye' }, 'bye before the hello'],
    [{ type: '\u009b' }, 'a message of no known type before the hello'],
    [{ ...hello, public_key: 'x' }, 'a hello whose public_key is not 32 bytes in hex'],
    [{ ...hello, signature: [] }, 'a hello whose signature is not 64 bytes in hex'],
    [{ ...hello, versions: many }, 'a hello whose versions are not 1 to 16 numbers'],
    [{ ...hello, versions: ['1'] }, 'a hello with a version that is not a positive integer'],
  ])('refuses the hello %o', (message, fault) => {
    expect(readHelloProof(message)).toBe(fault);
  });
});
