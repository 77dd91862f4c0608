import { expect, test } from 'vitest';
import { bestMatches, matchRank } from './rank.ts';

const unused = { limit: 8, usesOf: () => 0 };
const named = (...names: string[]) => names.map((name) => ({ id: name, name }));
const namesOf = ({ found }: { readonly found: readonly { readonly item: { readonly name: string } }[] }) =>
  found.map(({ item }) => item.name);

test.each([
  ['web', 'web', 0],
  ['web', 'web-1', 1],
  ['paris', 'web-paris-1', 2],
  ['ari', 'web-paris-1', 3],
  ['new mod', 'module: new', 4],
  ['db', 'web', null],
])('ranks the query %s in the text %s as %s', (query, text, rank) => {
  expect(matchRank(query, text)).toBe(rank);
});

test('lists equally good matches in natural order', () => {
  const agents = named('web-paris-10', 'web-paris-2', 'old-web-p', 'web-paris-1');
  expect(namesOf(bestMatches(agents, 'web-p', unused))).toEqual([
    ...['web-paris-1', 'web-paris-2', 'web-paris-10', 'old-web-p'],
  ]);
});

test('lists entries that were chosen more often before equally good matches', () => {
  const usesOf = (id: string) => (id === 'web-3' ? 2 : id === 'web-2' ? 1 : 0);
  expect(namesOf(bestMatches(named('web-1', 'web-2', 'web-3', 'web'), 'web', { limit: 8, usesOf }))).toEqual([
    ...['web', 'web-3', 'web-2', 'web-1'],
  ]);
});

test('keeps the order of items without a query', () => {
  expect(namesOf(bestMatches(named('overview', 'agents', 'audit'), '', unused))).toEqual([
    'overview',
    'agents',
    'audit',
  ]);
});

test('sorts items without an order by name if there is no query', () => {
  const agents = named('web-10', 'db-1', 'web-2');
  expect(namesOf(bestMatches(agents, '', { ...unused, isOrdered: false }))).toEqual(['db-1', 'web-2', 'web-10']);
});

test('returns the best matches and the number of all matches', () => {
  const agents = named(...Array.from({ length: 30 }, (_, at) => `web-${30 - at}`));
  const { found, count } = bestMatches(agents, 'web', { limit: 3, usesOf: () => 0 });
  expect(found.map(({ item }) => item.name)).toEqual(['web-1', 'web-2', 'web-3']);
  expect(count).toBe(30);
});

test('ranks matches in synonyms after all matches in the name', () => {
  const items = [
    { id: '1', name: 'Theme: dark', otherTexts: ['night'] },
    { id: '2', name: 'midnight-1' },
  ];
  expect(namesOf(bestMatches(items, 'night', unused))).toEqual(['midnight-1', 'Theme: dark']);
});
