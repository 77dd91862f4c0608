import { type AuditEvent, eventTypes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { keys } from './keys.ts';
import { staleAfter } from './stale.ts';

/** Categories whose events change nothing that pages show, but the log of events and what is told of it. */
const changeNothing = ['auth', 'discovery'];

const eventOf = (event_type: string) =>
  ({ event_type, target: { type: 'thing', id: 'id-1', name: 'name-1' }, metadata: {} }) as unknown as AuditEvent;
const staleBy = (event_type: string) => staleAfter({ kind: 'event', event: eventOf(event_type) });

test.each(Object.keys(eventTypes))('%s makes stale what it is about, or is known to change nothing', (type) => {
  const beyondTheLog = staleBy(type).slice(2);
  expect(staleBy(type).slice(0, 2)).toEqual([keys.audit, keys.notifications]);
  expect(beyondTheLog.length > 0).toBe(!changeNothing.includes(type.split('.')[0] as string));
});

test.each([
  ['module.uploaded', keys.module('name-1')],
  ['assignment.updated', keys.assignment('name-1')],
  ['run.finished', keys.run('id-1')],
  ['secret.updated', keys.secrets],
  ['terminal.closed', ['terminal']],
  ['drift.detected', keys.drift],
])('%s names %j', (type, key) => {
  expect(staleBy(type)).toContainEqual(key);
});

test('a database that was restored makes everything stale', () => {
  expect(staleBy('system.restored')).toContainEqual([]);
});

test('hints name the one thing that changed, and a gap everything', () => {
  const operation = { kind: 'operation', operation_id: 'o', node_id: 'n', run_id: 'r' } as const;
  expect(staleAfter(operation)).toEqual(expect.arrayContaining([keys.operation('o'), keys.state('n'), keys.run('r')]));
  expect(staleAfter({ ...operation, run_id: null })).not.toContainEqual(keys.runs);
  expect(staleAfter({ kind: 'run', run_id: 'r' })).toContainEqual(keys.run('r'));
  expect(staleAfter({ kind: 'window' })).toEqual([keys.windows]);
  expect(staleAfter({ kind: 'output', operation_id: 'o', node_id: 'n' })).toEqual([keys.output('o')]);
  expect(staleAfter({ kind: 'gap' })).toEqual([[]]);
});
