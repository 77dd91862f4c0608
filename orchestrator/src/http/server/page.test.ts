import { describe, expect, test } from 'vitest';
import type { Chunked, JsonBody } from './handlers.ts';
import { nextLink, paged, pagedJson } from './page.ts';

describe('next page', () => {
  test('changes only the offset in the URL of the next page', () => {
    expect(nextLink('/api/v1/agents?filter=role%3Dweb+site&offset=2&limit=2', { limit: '2', offset: '4' })).toBe(
      '</api/v1/agents?filter=role%3Dweb+site&offset=4&limit=2>; rel="next"',
    );
    expect(nextLink('/api/v1/drift', { cursor: 'a b' })).toBe('</api/v1/drift?cursor=a+b>; rel="next"');
  });

  test('escapes the URL in the Link header', () => {
    expect(nextLink('/x?q=%3E%0d%0a,%22', { offset: '1' })).toBe('</x?q=%3E%0D%0A%2C%22&offset=1>; rel="next"');
  });

  test('links to the next page only if the list has more items', () => {
    const request = { limit: 2, offset: 4 };
    expect(paged({ items: [1, 2], more: true }, request).next).toEqual({ limit: '2', offset: '6' });
    expect(paged({ items: [1], more: false }, request).next).toBeNull();
    const long = pagedJson<number>(
      { items: Array.from({ length: 1001 }, (_, i) => Buffer.from(String(i))), more: true },
      request,
    );
    expect(long.next).toEqual({ limit: '2', offset: '1005' });
    const chunks = [...((long.items as Chunked<number>).chunks as Iterable<JsonBody<number[]>>)];
    const read = chunks.map(({ json }) => JSON.parse(String(json)) as number[]);
    expect(read.map(({ length }) => length)).toEqual([500, 500, 1]);
    expect(read.flat()).toEqual(Array.from({ length: 1001 }, (_, i) => i));
  });
});
