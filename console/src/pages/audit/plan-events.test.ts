import type { AuditEvent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { foldPlanEvents } from './plan-events.ts';

const event = (event_type: string, summary: string) => ({ event_type, summary }) as AuditEvent;
const planned = event('state.planned', 'plan on web-1 succeeded');
const requested = event('state.requested', 'plan on web-1 requested');
const cancelled = event('state.cancelled', 'plan on web-1 cancelled');

test('folds consecutive plan events, and no other events', () => {
  const applied = event('state.applied', 'apply on web-1 succeeded');
  const applying = event('state.requested', 'apply on web-1 requested');
  expect(foldPlanEvents([planned, cancelled, requested, applied, applying, planned])).toEqual([
    { plans: [planned, cancelled, requested] },
    { event: applied },
    { event: applying },
    { event: planned },
  ]);
});
