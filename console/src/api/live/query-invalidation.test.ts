import { InfiniteQueryObserver, QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { createStaleMarker, hasAnswers, newestFirst, provisional, refetchDelay } from './query-invalidation.ts';

/** Waits for timers that start each other. A single timer of several milliseconds may fire before them if it is late. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve));
}

/** Returns a query whose pending fetches the test completes. */
function underTest() {
  const client = new QueryClient({
    defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } },
  });
  const requests: ((answer: unknown) => void)[] = [];
  const aborted: boolean[] = [];
  const queryFn = ({ signal }: { signal: AbortSignal }) =>
    new Promise((resolve) => {
      const index = requests.push(resolve) - 1;
      signal.addEventListener('abort', () => {
        aborted[index] = true;
      });
    });
  return { client, mark: createStaleMarker(client), requests, aborted, queryFn };
}

test('reports whether any query has a result that is not provisional', async () => {
  const client = new QueryClient();
  await client.prefetchQuery({ queryKey: ['first'], queryFn: () => 'first', meta: provisional });
  expect(hasAnswers(client)).toBe(false);
  await client.prefetchQuery({ queryKey: ['all'], queryFn: () => 'all' });
  expect(hasAnswers(client)).toBe(true);
});

test('never fetches a provisional result again', async () => {
  const { client, mark, requests, queryFn } = underTest();
  new QueryObserver(client, { queryKey: ['things', 'first'], queryFn, meta: provisional }).subscribe(() => {});
  requests[0]?.('first');
  await settle();
  mark(['things']);
  await settle();
  expect(requests).toHaveLength(1);
});

test('fetches a query again if it becomes stale during a request', async () => {
  const { client, mark, requests, aborted, queryFn } = underTest();
  const observer = new QueryObserver(client, { queryKey: ['things'], queryFn });
  observer.subscribe(() => {});
  mark(['things']);
  mark([]);
  expect(requests).toHaveLength(1);
  requests[0]?.('before');
  await settle();
  expect(observer.getCurrentResult().data).toBe('before');
  expect(requests).toHaveLength(2);
  requests[1]?.('after');
  await settle();
  expect(observer.getCurrentResult().data).toBe('after');
  expect(requests).toHaveLength(2);
  expect(aborted).toEqual([]);
});

test('completes a request that takes longer than the interval between events', async () => {
  const { client, mark, requests, aborted, queryFn } = underTest();
  client.setQueryData(['things'], 'old');
  const observer = new QueryObserver(client, { queryKey: ['things'], queryFn });
  observer.subscribe(() => {});
  for (let event = 0; event < 5; event++) mark(['things']);
  expect(requests).toHaveLength(1);
  requests[0]?.('new');
  await settle();
  expect(observer.getCurrentResult().data).toBe('new');
  expect(aborted).toEqual([]);
});

test('fetches a stale query when a page starts to use it', async () => {
  const { client, mark, requests, queryFn } = underTest();
  client.setQueryData(['things'], 'old');
  mark(['things']);
  await settle();
  expect(requests).toHaveLength(0);
  new QueryObserver(client, { queryKey: ['things'], queryFn }).subscribe(() => {});
  expect(requests).toHaveLength(1);
});

test('marks a list with several pages as stale without fetching it', async () => {
  const { client, mark } = underTest();
  let requests = 0;
  const observer = new InfiniteQueryObserver(client, {
    queryKey: ['log'],
    queryFn: async ({ pageParam }) => {
      requests++;
      return pageParam;
    },
    initialPageParam: 0,
    getNextPageParam: (last: number) => last + 1,
    meta: newestFirst,
  });
  observer.subscribe(() => {});
  await settle();
  mark(['log']);
  await settle();
  expect(requests).toBe(2);
  await observer.fetchNextPage();
  mark(['log']);
  await settle();
  expect(requests).toBe(3);
  expect(observer.getCurrentResult().isStale).toBe(true);
});

test('delays fetching a large result again, and misses no event during the delay', async () => {
  let time = 0;
  const waiting: { at: number; act: () => void }[] = [];
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  const clock = { now: () => time, after: (ms: number, act: () => void) => void waiting.push({ at: time + ms, act }) };
  const mark = createStaleMarker(client, clock);
  let requests = 0;
  const observer = new QueryObserver(client, {
    queryKey: ['run'],
    queryFn: async () => ({ requests: ++requests, results: Array.from({ length: 10_000 }) }),
    structuralSharing: false,
  });
  observer.subscribe(() => {});
  await settle();
  mark(['run']);
  mark(['run']);
  await settle();
  expect(requests).toBe(1);
  expect(observer.getCurrentResult().isStale).toBe(true);
  expect(waiting.map(({ at }) => at)).toEqual([10_000]);
  time = 10_000;
  waiting[0]?.act();
  await settle();
  expect(requests).toBe(2);
  mark(['run']);
  await settle();
  expect([requests, waiting.length]).toEqual([2, 2]);
});

test('delays the next request in proportion to the size of the result', () => {
  const many = (length: number) => Array.from({ length }, () => ({}));
  const answers = [null, 'text', many(999), many(5_000), { results: many(3_000), modules: many(2) }];
  expect([...answers, { pages: [many(700), { operations: many(700) }] }, many(100_000)].map(refetchDelay)).toEqual([
    ...[0, 0, 0, 5_000, 3_000, 2_400, 15_000],
  ]);
});

test('does not fetch a result again if it was requested after the event', async () => {
  let time = 0;
  const client = new QueryClient({
    defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } },
  });
  const mark = createStaleMarker(client, { now: () => time, after: () => {} });
  let requests = 0;
  let fails = false;
  const observer = new InfiniteQueryObserver(client, {
    queryKey: ['things'],
    queryFn: async ({ pageParam }) => {
      requests++;
      if (fails) throw new Error('not now');
      return pageParam;
    },
    initialPageParam: 0,
    getNextPageParam: (last: number) => last + 1,
  });
  time = 10;
  observer.subscribe(() => {});
  mark(['things'], 9);
  await settle();
  mark(['things'], 9);
  await settle();
  expect(requests).toBe(1);
  mark(['things'], 10);
  await settle();
  expect(requests).toBe(2);
  // Fetching the next page does not update the first page.
  time = 20;
  await observer.fetchNextPage();
  expect(requests).toBe(3);
  // The delay before a list with two pages may be fetched again has passed.
  time = 2_000;
  mark(['things'], 15);
  await settle();
  expect(requests).toBe(5);
  // A failed request does not make the result newer than the event.
  time = 4_000;
  fails = true;
  mark(['things'], 3_900);
  await settle();
  time = 4_100;
  mark(['things'], 3_950);
  await settle();
  expect(requests).toBe(7);
});
