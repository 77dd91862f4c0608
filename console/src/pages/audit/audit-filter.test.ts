import { expect, test } from 'vitest';
import { auditFilterOf } from './audit-filter.ts';

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
