import { expect, test } from 'vitest';
import { auditFilterOf, isPeriod, startOfPeriod } from './audit-filter.ts';

const nothing = { category: '', operator: '', agent: '', after: '', before: '' };

test('omits empty fields from the filter', () => {
  expect(auditFilterOf(nothing)).toEqual({});
  expect(auditFilterOf({ ...nothing, agent: ' web-1 ', operator: ' ' })).toEqual({ agent: 'web-1' });
});

test('treats a category with a dot as an event type', () => {
  expect(auditFilterOf({ ...nothing, category: 'agent' })).toEqual({ category: 'agent' });
  expect(auditFilterOf({ ...nothing, category: 'agent.lost' })).toEqual({ event_type: 'agent.lost' });
});

test('reads local times and omits an incomplete one', () => {
  const after = '2026-11-20T08:30';
  expect(auditFilterOf({ ...nothing, after, before: '2026-' })).toEqual({ after: new Date(after).toISOString() });
});

test('starts a recent period at a full minute', () => {
  const now = Date.parse('2026-11-20T08:30:59.500Z');
  expect(startOfPeriod('hour', now)).toBe('2026-11-20T07:30:00.000Z');
  expect(startOfPeriod('week', now)).toBe('2026-11-13T08:30:00.000Z');
  expect([isPeriod('day'), isPeriod('custom'), isPeriod('toString')]).toEqual([true, false, false]);
});
