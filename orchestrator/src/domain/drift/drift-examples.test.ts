import { offAgentSchema } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { ExampleShare, examplesOf, examplesOfKeys, withoutChanges } from './drift-examples.ts';

const schema = offAgentSchema.shape.drift.element.shape.examples;

test('keeps at most three resources with three changes each', () => {
  const changes = ['mode', 'owner', 'group', 'content'].map((field) => ({ field, from: '1', to: '2' }));
  const examples = examplesOf(
    Array.from({ length: 5 }, (_, index) => resultOf({ identity: `/f${index}`, changes })),
    null,
  );
  expect(examples.map(({ identity }) => identity)).toEqual(['/f0', '/f1', '/f2']);
  expect(examples[0]?.changes.map(({ field }) => field)).toEqual(['mode', 'owner', 'group']);
  expect(schema.parse(examples)).toEqual(examples);
});

test('shortens long text without splitting a character', () => {
  const [example] = examplesOf(
    [
      resultOf({
        identity: `${'x'.repeat(198)}😀${'y'.repeat(4_000)}`,
        changes: [{ field: 'a', from: 'z'.repeat(300), to: null }],
      }),
    ],
    null,
  );
  expect(example?.identity).toHaveLength(200);
  expect(example?.identity.isWellFormed()).toBe(true);
  expect(example?.changes).toEqual([{ field: 'a', from: `${'z'.repeat(199)}…`, to: null }]);
});

test('names resources and fields of a record that is too large to read', () => {
  expect(examplesOfKeys({ 'file:/etc/a:b': ['mode'], odd: ['run'] })).toEqual([
    { type: 'file', identity: '/etc/a:b', action: 'none', changes: [{ field: 'mode', from: null, to: null }] },
    { type: '', identity: 'odd', action: 'none', changes: [{ field: 'run', from: null, to: null }] },
  ]);
});

test('limits the total size of the resources on a page, with an equal share for each agent', () => {
  const long = '\u4e00'.repeat(4_000);
  const changes = Array(3).fill({ field: 'f'.repeat(128), from: long, to: long });
  const hostile = examplesOf(Array(3).fill(resultOf({ type: long, identity: long, changes })), null);
  const page = Array.from({ length: 500 }, () => new ExampleShare(500)).map((share) =>
    Array.from({ length: 100 }, () => share.take(hostile)),
  );
  expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(3 * 1024 * 1024);
  const share = new ExampleShare(500);
  expect(share.take([...hostile, { type: 'file-unix', identity: '/f' }])).toEqual([
    { type: 'file-unix', identity: '/f' },
  ]);
  expect(new ExampleShare(50).take(hostile)).toEqual(hostile);
  expect(new ExampleShare(500).take(hostile, withoutChanges)).toEqual(hostile.map(withoutChanges));
});
