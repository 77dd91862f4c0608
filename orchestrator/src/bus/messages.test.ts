import { expect, test } from 'vitest';
import { decode, encode, hintsIn, type Message, toWire } from './messages.ts';

test('sends the name of the resource with new output, but neither the names of changed links nor queued operations', () => {
  const operation = { operation_id: 'o' } as never;
  expect(toWire({ type: 'work', node_id: 'a', operation })).toEqual({ type: 'work', node_id: 'a' });
  expect(toWire({ type: 'agent_departed', node_id: 'a', heard_at: 1 })).toEqual({ type: 'links_changed' });
  const output = { type: 'output', node_id: 'a', operation_id: 'o', resource: 'r' } as const;
  expect(toWire(output)).toEqual(output);
  expect(toWire({ type: 'hints_lost' })).toBeNull();
  const removed = { type: 'agent_removed', node_id: 'a' } as const;
  expect(hintsIn([toWire(removed)])).toEqual([removed]);
});

test('ignores unknown messages and hints', () => {
  const message: Message = { type: 'numbers', nonce: 'n', all: 7 };
  expect(decode(encode(message))).toEqual(message);
  for (const text of ['', 'null', '[]', '{"type":"other"}', '{"type":"numbers","nonce":"n","all":-1}'])
    expect(decode(Buffer.from(text))).toBeNull();
  const ended = { type: 'operation_ended', operation_id: 'o', node_id: 'a', run_id: null };
  expect(hintsIn([{ type: 'other' }, null, 7, { ...ended, status: 'other' }, { ...ended, status: 'failed' }])).toEqual([
    { ...ended, status: 'failed' },
  ]);
});
