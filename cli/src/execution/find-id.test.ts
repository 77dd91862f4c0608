import { expect, test } from 'vitest';
import { findId } from './find-id.ts';

const first = '01KAGZ4D3E5F6G7H8J9K0M1N2P';
const second = '01KAGZ4D3E5F6G7H8J9K0M1N3Q';
const find = (wanted: string) => findId('run', 'muster runs list', wanted, async () => [first, second]);

test.each([
  [first.toLowerCase(), first],
  ['n2p', first],
  ['3Q', second],
  ['01KAGZ4D3E5F6G7H8J9K0M1N3', second],
])('%s is an id', async (wanted, id) => {
  expect(await find(wanted)).toBe(id);
});

test('a whole id is not looked up: it may be older than what a list shows', async () => {
  const old = '01AAAAAAAAAAAAAAAAAAAAAAAA';
  expect(await findId('run', '', old, () => Promise.reject(new Error('looked up')))).toBe(old);
});

test('what fits two or none is refused with the list to look at', async () => {
  await expect(find('01K')).rejects.toMatchObject({
    code: 'id_ambiguous',
    remedy: expect.stringContaining('runs list'),
  });
  await expect(find('XYZ')).rejects.toMatchObject({ code: 'id_unknown', remedy: expect.stringContaining('runs list') });
  await expect(find('')).rejects.toMatchObject({ exit: 2 });
});
