import { expect, test } from 'vitest';
import { auditFilterOf } from './audit-filter.ts';

const nothing = { category: '', operator: '', agent: '', after: '', before: '' };

test('what is empty is not asked for', () => {
  expect(auditFilterOf(nothing)).toEqual({});
  expect(auditFilterOf({ ...nothing, agent: ' web-1 ', operator: ' ' })).toEqual({ agent: 'web-1' });
});

test('a category with a dot is the type of an event', () => {
  expect(auditFilterOf({ ...nothing, category: 'agent' })).toEqual({ category: 'agent' });
  expect(auditFilterOf({ ...nothing, category: 'agent.lost' })).toEqual({ event_type: 'agent.lost' });
});

test('times are local ones, and one that is not whole is left out', () => {
  const after = '2026-11-20T08:30';
  expect(auditFilterOf({ ...nothing, after, before: '2026-' })).toEqual({ after: new Date(after).toISOString() });
});
