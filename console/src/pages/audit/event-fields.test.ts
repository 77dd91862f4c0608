import { type AuditEvent, listAudit } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { fieldsOf } from './event-fields.ts';

const [example] = (listAudit.example.answer as never as { events: [AuditEvent] }).events;
const of = (metadata: object, sentence = 'Module web uploaded as revision 4') =>
  fieldsOf({ ...example, metadata } as never, sentence).map(({ label, text }) => `${label}: ${text}`);

test('omits what the sentence, the actor, or the target already tells', () => {
  const { actor, target } = example;
  expect(of({ revision: 4, name: 'web', by: actor.name, id: target.id, digest: 'c0ffee' })).toEqual(['Digest: c0ffee']);
});

test('keeps a value that is only a part of a word of the sentence', () => {
  expect(of({ version: 4, prefix: 'up' }, 'Module web uploaded as revision 41')).toEqual(['Version: 4', 'Prefix: up']);
});

test('omits fields without a value', () => {
  expect(of({ modules: [], reason: '', run_id: null })).toEqual([]);
});

test('labels fields and their values in words', () => {
  expect(
    of({
      ...{ ip: '192.0.2.1', pin_source: 'first_use', operation_id: '01A', web: true, free_bytes: 2048 },
      ...{ summary: { changed: 2, to_remove: 0 }, tags: ['a', 'b'], duration_secs: 90 },
    }),
  ).toEqual([
    ...['IP address: 192.0.2.1', 'Pin source: trusted on first use', 'Operation: 01A', 'Web: yes'],
    ...['Free space: 2.0 KiB', 'Summary: changed 2, to remove 0', 'Tags: a, b', 'Duration: 90 s'],
  ]);
});

test('shows times in the time zone of the browser', () => {
  expect(of({ expires_at: 1_800_000_000 })[0]).toMatch(/^Expires: .*2027/);
});
