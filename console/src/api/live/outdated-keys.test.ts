import { type AuditEvent, eventTypes, notifyingEvents } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { keys } from '../query-keys.ts';
import { categories, messageOf, outdatedKeysAfter } from './outdated-keys.ts';

/** Event categories that affect only the audit log and notifications. */
const changeNothing = ['discovery'];

const eventOf = (event_type: string) =>
  ({ event_type, target: { type: 'thing', id: 'id-1', name: 'name-1' }, metadata: {} }) as unknown as AuditEvent;
const staleBy = (event_type: string) => outdatedKeysAfter({ kind: 'event', event: eventOf(event_type) });

test.each(Object.keys(eventTypes))(
  'marks queries as stale after the event %s, unless it changes only the audit log',
  (type) => {
    const [log, ...others] = staleBy(type);
    expect(log).toEqual(keys.audit);
    const notifies = (notifyingEvents as readonly string[]).includes(type);
    expect(others.includes(keys.notifications)).toBe(notifies);
    expect(others.length > (notifies ? 1 : 0)).toBe(!changeNothing.includes(type.split('.')[0] as string));
  },
);

test.each([
  ['module.uploaded', keys.module('name-1')],
  ['module.uploaded', keys.overview],
  ['assignment.updated', keys.assignment('name-1')],
  ['run.finished', keys.run('id-1')],
  ['secret.updated', keys.secrets],
  ['terminal.closed', ['terminal']],
  ['drift.detected', keys.drift],
])('after the event %s, marks the key %j as stale', (type, key) => {
  expect(staleBy(type)).toContainEqual(key);
});

test('marks all queries as stale after the database was restored', () => {
  expect(staleBy('system.restored')).toContainEqual([]);
});

test('marks the named record as stale after a hint, and all queries after a gap', () => {
  const operation = { kind: 'operation', operation_id: 'o', node_id: 'n', run_id: 'r' } as const;
  expect(outdatedKeysAfter(operation)).toEqual(
    expect.arrayContaining([keys.operation('o'), keys.state('n'), keys.run('r')]),
  );
  expect(outdatedKeysAfter({ ...operation, run_id: null })).not.toContainEqual(keys.runs);
  expect(outdatedKeysAfter({ kind: 'run', run_id: 'r' })).toContainEqual(keys.run('r'));
  expect(outdatedKeysAfter({ kind: 'window' })).toEqual([keys.windows, ['values']]);
  expect(outdatedKeysAfter({ kind: 'output', operation_id: 'o', node_id: 'n' })).toEqual([keys.output('o')]);
  expect(outdatedKeysAfter({ kind: 'gap' })).toEqual([[]]);
});

test('subscribes to every category of events', () => {
  const requested = new Set(categories.split(','));
  for (const type of Object.keys(eventTypes)) expect(requested).toContain(type.split('.')[0]);
  expect(requested).toContain('notification');
  expect(categories.length).toBeLessThanOrEqual(256);
});

test('marks the same keys for one message with several changes as for one message per change', () => {
  const change = { operation_id: 'o1', node_id: 'n1', run_id: 'r1' };
  const together = messageOf('operations', JSON.stringify({ operations: [change] }));
  const alone = messageOf('operation', JSON.stringify(change));
  expect(together && outdatedKeysAfter(together)).toEqual(alone && outdatedKeysAfter(alone));
  for (const operations of [null, Array.from({ length: 500 }, () => change)]) {
    const marked = outdatedKeysAfter({ kind: 'operations', operations });
    expect(marked.length).toBeLessThan(12);
    for (const key of [keys.operations, ['operation'], ['run'], keys.runs, keys.overview])
      expect(marked).toContainEqual(key);
  }
});

test('ignores unknown frames of the event stream', () => {
  expect(messageOf('agent', '{"node')).toBeNull();
  expect(messageOf('tomorrow', '{}')).toBeNull();
  expect(messageOf('notification', '{}')).toEqual({ kind: 'notification' });
  expect(messageOf('gap', '{"after":1}')).toMatchObject({ kind: 'gap' });
});

test('marks all runs if any may have changed', () => {
  expect(outdatedKeysAfter({ kind: 'run', run_id: null })).toContainEqual(['run']);
});
