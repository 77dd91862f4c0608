import type { AuditEvent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { maxEvents, newestEvents, withNewer } from './newest-events.ts';

const event = (id: string) => ({ id, event_type: 'agent.lost', summary: '' }) as AuditEvent;
const ids = (events: readonly AuditEvent[]) => events.map(({ id }) => id).join('');

test('puts newer events first, without duplicates', () => {
  expect(ids(withNewer([event('b'), event('a')], [event('b'), event('c'), event('d')]))).toBe('dcba');
});

test('drops the oldest events beyond the maximum', () => {
  const many = Array.from({ length: maxEvents }, (_, at) => event(`old-${at}`));
  const merged = withNewer(many, [event('new')]);
  expect([merged.length, merged[0]?.id]).toEqual([maxEvents, 'new']);
});

test('reads further pages until it has enough events other than those of plans', async () => {
  const plan = (id: string) => ({ ...event(id), event_type: 'state.planned', summary: 'plan on web-1 succeeded' });
  const pages = [
    { events: [event('a'), plan('b')], next_cursor: '1' },
    { events: [plan('c')], next_cursor: '2' },
    { events: [event('d')], next_cursor: null },
  ];
  const read: (string | null)[] = [];
  const events = await newestEvents(async (cursor) => {
    read.push(cursor);
    return pages[Number(cursor ?? 0)]!;
  });
  expect([ids(events), read]).toEqual(['ad', [null, '1', '2']]);
});

test('stops at the maximum, and after five pages of plans', async () => {
  const many = { events: Array.from({ length: 60 }, (_, at) => event(String(at))), next_cursor: '1' };
  expect(await newestEvents(async () => many)).toHaveLength(maxEvents);
  let pages = 0;
  const plans = { events: [{ ...event('a'), event_type: 'state.planned', summary: '' }], next_cursor: '1' };
  await newestEvents(async () => {
    pages++;
    return plans;
  });
  expect(pages).toBe(5);
});
