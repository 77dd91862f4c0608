import { describe, expect, test } from 'vitest';
import { ApiError, apiErrorOf, createClient } from './client.ts';
import { listModules } from './http/modules.ts';

/** Creates a transport that lists `count` items, two per page. */
function pages(count: number, link = (offset: number) => `</api/v1/modules?limit=2&offset=${offset}>; rel="next"`) {
  const urls: string[] = [];
  const client = createClient({
    url: 'http://muster.test/',
    transport: async ({ url }) => {
      urls.push(url);
      const offset = Number(new URL(url).searchParams.get('offset') ?? 0);
      const more = offset + 2 < count;
      return {
        status: urls.length > 9 ? 500 : 200,
        header: (name) => (name === 'link' && more ? link(offset + 2) : null),
        text: async () => JSON.stringify(Array.from({ length: Math.min(2, count - offset) }, (_, i) => offset + i)),
      };
    },
  });
  return { urls, client };
}

describe('client lists', () => {
  test('reads all pages with `all`', async () => {
    const { urls, client } = pages(5);
    expect(await client(listModules, { all: true })).toEqual([0, 1, 2, 3, 4]);
    expect(urls).toEqual([
      'http://muster.test/api/v1/modules',
      'http://muster.test/api/v1/modules?limit=2&offset=2',
      'http://muster.test/api/v1/modules?limit=2&offset=4',
    ]);
  });

  test('reads pages until it has `atMost` items', async () => {
    const { urls, client } = pages(9);
    expect(await client(listModules, { query: { limit: '3' }, atMost: 3 })).toEqual([0, 1, 2]);
    expect(urls).toHaveLength(2);
    expect(await pages(5).client(listModules, { atMost: 500 })).toEqual([0, 1, 2, 3, 4]);
    const exact = pages(9);
    expect(await exact.client(listModules, { atMost: 2 })).toEqual([0, 1]);
    expect(exact.urls).toHaveLength(1);
  });

  test('reads one page without `all` or `atMost`', async () => {
    const { urls, client } = pages(5);
    expect(await client(listModules, {})).toEqual([0, 1]);
    expect(urls).toHaveLength(1);
  });

  test('fails if the link to the next page leads to a different address', async () => {
    const elsewhere = pages(5, () => '<https://evil.test/api/v1/modules>; rel="next"');
    expect(await elsewhere.client(listModules, { all: true })).toEqual([0, 1]);
    await expect(pages(100).client(listModules, { all: true })).rejects.toThrow(ApiError);
  });
});

test.each([
  [1_795_000_000, 1_795_000_000],
  ['1795000000', undefined],
  [0.5, undefined],
  [1e300, undefined],
  [8.64e12 + 1, undefined],
])('reads `planned_at` of an error only if it is a time: %j', (planned_at, read) => {
  const text = JSON.stringify({ code: 'plan_stale', detail: 'stale', planned_at });
  expect(apiErrorOf(409, text, null).problem).toEqual({
    ...{ code: 'plan_stale', detail: 'stale' },
    ...(read === undefined ? {} : { planned_at: read }),
  });
});
