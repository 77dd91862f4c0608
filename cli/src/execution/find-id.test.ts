import { expect, test } from 'vitest';
import { findId } from './find-id.ts';

const first = '01KAGZ4D3E5F6G7H8J9K0M1N2P';
const second = '01KAGZ4D3E5F6G7H8J9K0M1N3Q';
const find = (idPart: string) => findId('run', 'muster runs list', idPart, async () => [first, second]);

test.each([
  [first.toLowerCase(), first],
  ['n2p', first],
  ['3Q', second],
  ['01KAGZ4D3E5F6G7H8J9K0M1N3', second],
])('finds the only ID that %s matches', async (idPart, id) => {
  expect(await find(idPart)).toBe(id);
});

test('accepts a complete ID without reading the list, which may not contain older IDs', async () => {
  const old = '01AAAAAAAAAAAAAAAAAAAAAAAA';
  expect(await findId('run', '', old, () => Promise.reject(new Error('looked up')))).toBe(old);
});

test('refuses an ambiguous or unknown part of an ID, and suggests the command that lists IDs', async () => {
  await expect(find('01K')).rejects.toMatchObject({
    code: 'id_ambiguous',
    remedy: expect.stringContaining('runs list'),
  });
  await expect(find('XYZ')).rejects.toMatchObject({ code: 'id_unknown', remedy: expect.stringContaining('runs list') });
  await expect(find('')).rejects.toMatchObject({ exit: 2 });
});
