import type { AuditEvent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { foldPlanEvents } from './plan-events.ts';

const event = (event_type: string, summary: string) => ({ event_type, summary }) as AuditEvent;
const planned = event('state.planned', 'plan on web-1 succeeded');
const requested = event('state.requested', 'plan on web-1 requested');
const cancelled = event('state.cancelled', 'plan on web-1 canceled');

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

test('folds the events of a run that plans, except a halt and a failure', () => {
  const plans = [
    event('run.ended', 'plan of web succeeded on 20 agents'),
    event('run.ended', 'plan of web ended after it was canceled: succeeded on 3 of 5 agents'),
    event('run.cancelled', 'plan of web canceled'),
    event('run.started', 'plan of web started on 20 agents'),
    event('run.started', 'plan started on 2 agents'),
  ];
  const others = [
    event('run.ended', 'apply of web succeeded on 20 agents'),
    event('run.ended', 'plan of web failed on 3 of 3 agents'),
    event('run.ended', 'plan of selected agents failed on 3 of 3 agents'),
    event('run.halted', 'plan of web was halted: 1 agent failed, and the maximum is 0'),
  ];
  expect(foldPlanEvents([...plans, ...others])).toEqual([{ plans }, ...others.map((other) => ({ event: other }))]);
});
