import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonText } from '../../store/json-text.ts';
import { canonicalJson, genesis, hashOf, toAuditEvent } from './audit-chain.ts';
import { cutOf } from './audit-retention.ts';

describe('canonical JSON', () => {
  test('serializes values as RFC 8785 specifies', () => {
    // The example in RFC 8785, section 3.2.3, and the numbers in section 3.2.2.
    const keys = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 };
    expect(Object.keys(JSON.parse(canonicalJson(keys)))).toHaveLength(7);
    expect([...canonicalJson(keys).matchAll(/:(\d)/g)].map(([, n]) => n).join('')).toBe('2467153');
    expect(canonicalJson([333333333.3333333, 1e30, 4.5, 2e-3, 1e-27, null, true, 'a"\\\n'])).toBe(
      '[333333333.3333333,1e+30,4.5,0.002,1e-27,null,true,"a\\"\\\\\\n"]',
    );
  });

  test('serializes equal values with any key order to the same JSON, which parses to the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const turned = JSON.parse(JSON.stringify(value), (_, part) =>
          typeof part === 'object' && part !== null && !Array.isArray(part)
            ? Object.fromEntries(Object.entries(part).reverse())
            : part,
        );
        expect(canonicalJson(turned)).toBe(canonicalJson(JSON.parse(JSON.stringify(value))));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

test('hashes the previous hash and the export line without its hash', () => {
  const event = {
    place: 1,
    id: '01KAGZ7R3E5F6G7H8J9K0M1N2P',
    event_type: 'agent.tagged',
    severity: 'info',
    timestamp_ms: 1_795_000_000_123,
    actor_type: 'operator',
    actor_id: 'a',
    actor_name: 'ada',
    target_type: 'agent',
    target_id: 'n',
    target_name: 'wéb-1',
    summary: 'tagged',
    metadata: '{"tags":{"b":"2","a":"1"}}' as JsonText<Record<string, unknown>>,
  } as const;
  const text =
    '{"actor":{"id":"a","name":"ada","type":"operator"},"event_type":"agent.tagged","id":"01KAGZ7R3E5F6G7H8J9K0M1N2P",' +
    '"metadata":{"tags":{"a":"1","b":"2"}},"place":1,"severity":"info","summary":"tagged",' +
    '"target":{"id":"n","name":"wéb-1","type":"agent"},"timestamp":"2026-11-18T11:06:40.123Z"}';
  expect(hashOf(genesis, event)).toBe(createHash('sha256').update(`${genesis}${text}`).digest('hex'));
});

test('hashes the canonical JSON of the event as the API shows it', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 });
  const names = ['id', 'actor_id', 'actor_name', 'target_type', 'target_id', 'target_name', 'summary'] as const;
  const texts = fc.record(
    Object.fromEntries(names.map((name) => [name, text])) as Record<(typeof names)[number], typeof text>,
  );
  fc.assert(
    fc.property(texts, fc.jsonValue(), fc.nat(), fc.nat(), (given, metadata, place, timestamp_ms) => {
      const event = {
        ...given,
        place,
        timestamp_ms,
        event_type: 'agent.tagged',
        severity: 'info',
        actor_type: 'operator',
        metadata: JSON.stringify(metadata) as JsonText<Record<string, unknown>>,
      } as const;
      const line = canonicalJson({ ...toAuditEvent(event), place });
      expect(hashOf(genesis, event)).toBe(createHash('sha256').update(genesis).update(line).digest('hex'));
    }),
  );
});

describe('events to prune', () => {
  const from = { place: 10, hash: 'h10' };
  const events = (...times: number[]) =>
    times.map((timestamp_ms, at) => ({ place: 11 + at, hash: `h${11 + at}`, timestamp_ms }));

  test.each<[string, number[], number, boolean]>([
    ['an empty chain', [], 10, false],
    ['a chain of older events only', [1, 2, 3], 13, true],
    ['an event exactly at the given time, which is kept', [1, 100, 3], 11, false],
    ['an old event after a newer one, which is kept for now', [1, 2, 150, 3], 12, false],
    ['a chain without older events', [100, 101], 10, false],
    ['an event from the future, removed with its neighbors', [1, 5000, 3], 13, true],
    ['an event from the future before a newer one, which is kept for now', [1, 5000, 100], 11, false],
  ])('finds the events to remove from %s', (_, times, place, on) => {
    expect(cutOf(from, events(...times), 100, 1000)).toEqual({ cut: { place, hash: `h${place}` }, on });
  });
});
