import { describe, expect, test } from 'vitest';
import type { Chunked, JsonBody } from './handlers.ts';
import { JoinedPages, nextLink, paged, pagedJson } from './page.ts';

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

describe('pages as JSON arrays', () => {
  const items = ['{"n":1}', '{"n":2}', '{"n":3}'].map((json) => Buffer.from(json));
  const [first, second, third] = items as [Buffer, Buffer, Buffer];
  const request = { limit: 3, offset: 0 };

  test('reuses a joined page until one of its items changes', () => {
    const pages = new JoinedPages<{ n: number }>();
    const body = pages.join(request, items);
    expect(String(body.json)).toBe('[{"n":1},{"n":2},{"n":3}]');
    expect(pages.join(request, [...items])).toBe(body);
    expect(String(pages.join(request, [first, Buffer.from('{"n":4}'), third]).json)).toBe('[{"n":1},{"n":4},{"n":3}]');
    expect(String(pages.join(request, [first, second]).json)).toBe('[{"n":1},{"n":2}]');
    expect(String(pages.join(request, []).json)).toBe('[]');
    // A page with a different offset does not replace the first page.
    const shown = pages.join(request, items);
    expect(String(pages.join({ ...request, offset: 1 }, [second, third]).json)).toBe('[{"n":2},{"n":3}]');
    expect(pages.join(request, items)).toBe(shown);
  });

  test('limits the cache size in bytes, and keeps the most recently read pages', () => {
    const pages = new JoinedPages<{ n: number }>(2 * (500 + 2 * '[{"n":1},{"n":2},{"n":3}]'.length));
    const at = (offset: number) => pages.join({ limit: 3, offset }, items);
    const [one, two] = [at(1), at(2)];
    expect(at(1)).toBe(one);
    at(3);
    expect(at(1)).toBe(one);
    expect(at(2)).not.toBe(two);
  });

  test('caches a limited number of empty pages', () => {
    const pages = new JoinedPages<{ n: number }>(10_000);
    const at = (offset: number) => pages.join({ limit: 3, offset }, []);
    const one = at(1);
    for (let offset = 2; offset < 50; offset++) at(offset);
    expect(at(1)).not.toBe(one);
  });
});
