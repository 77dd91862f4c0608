import type { AuditEvent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { maxEvents, withNewer } from './newest-events.ts';

const event = (id: string) => ({ id }) as AuditEvent;
const ids = (events: readonly AuditEvent[]) => events.map(({ id }) => id).join('');

test('puts newer events first, without duplicates', () => {
  expect(ids(withNewer([event('b'), event('a')], [event('b'), event('c'), event('d')]))).toBe('dcba');
});

test('drops the oldest events beyond the maximum', () => {
  const many = Array.from({ length: maxEvents }, (_, at) => event(`old-${at}`));
  const merged = withNewer(many, [event('new')]);
  expect([merged.length, merged[0]?.id]).toEqual([maxEvents, 'new']);
});
