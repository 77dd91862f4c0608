import { expect, test } from 'vitest';
import { countedText, countText } from './count.ts';

test('groups the digits of large counts', () => {
  expect([0, 999, 1_000, 10_000, 1_234_567].map(countText)).toEqual(['0', '999', '1,000', '10,000', '1,234,567']);
});

test('uses the singular for a count of one', () => {
  expect([countedText(1, 'agent'), countedText(10_000, 'agent'), countedText(2, 'entry', 'entries')]).toEqual([
    ...['1 agent', '10,000 agents', '2 entries'],
  ]);
});
