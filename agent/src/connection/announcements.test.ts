import { announcementLimits } from '@muster/protocol/wire';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { TestAnnouncer } from '../../test/announce.ts';
import { Announcements } from './announcements.ts';

const orchestrator = new TestAnnouncer();
let clock: ManualClock;
let pin: string | null;
let judge: (datagram: Uint8Array) => string;

beforeEach(() => {
  clock = new ManualClock();
  pin = null;
  const announcements = new Announcements({
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    pinnedKey: () => pin,
  });
  judge = (datagram) => {
    const verdict = announcements.judge(datagram);
    return 'ignored' in verdict ? verdict.ignored : `${verdict.announcement.host}:${verdict.announcement.port}`;
  };
});

const now = () => Math.floor(clock.now() / 1000);
const datagram = (more = {}) => orchestrator.datagram({ sentAt: now(), ...more });

describe('an announcement', () => {
  test('follows signed, recent announcements; if an orchestrator is pinned, follows only its announcements', () => {
    expect(judge(datagram({ host: 'muster.example' }))).toBe('muster.example:4747');
    pin = orchestrator.hex;
    expect(judge(datagram())).toBe('127.0.0.1:4747');
    expect(judge(new TestAnnouncer().datagram({ sentAt: now() }))).toBe('foreign key');
  });

  test('ignores an announcement if any bit has changed', () => {
    const good = datagram();
    fc.assert(
      fc.property(fc.nat({ max: good.length * 8 - 1 }), (bit) => {
        const tampered = Buffer.from(good);
        tampered[bit >> 3]! ^= 1 << (bit & 7);
        clock.advance(1000);
        expect(['malformed', 'stale', 'signature', 'too many']).toContain(judge(tampered));
      }),
      { numRuns: 400 },
    );
    expect(judge(datagram())).toBe('127.0.0.1:4747');
  });

  test('ignores an announcement that was not signed with the key it names', () => {
    expect(judge(new TestAnnouncer().datagram({ sentAt: now(), orchestratorKey: orchestrator.publicKey }))).toBe(
      'signature',
    );
    // With a key of small order, standard Ed25519 verification accepts this signature for any message.
    const identity = Buffer.alloc(32);
    identity[0] = 1;
    const forged = datagram({ orchestratorKey: identity });
    forged.set(Buffer.concat([identity, Buffer.alloc(32)]), forged.length - 64);
    expect(judge(forged)).toBe('signature');
  });

  test('follows the same announcement only once', () => {
    const once = datagram();
    expect([judge(once), judge(once)]).toEqual(['127.0.0.1:4747', 'replayed']);
    clock.advance(announcementLimits.clockSkewSecs * 1000 + 1000);
    expect(judge(once)).toBe('stale');
  });

  test('accepts a clock skew of up to ten minutes', () => {
    const { clockSkewSecs } = announcementLimits;
    expect(judge(datagram({ sentAt: now() - clockSkewSecs }))).toBe('127.0.0.1:4747');
    expect(judge(datagram({ sentAt: now() + clockSkewSecs }))).toBe('127.0.0.1:4747');
    expect(judge(datagram({ sentAt: now() - clockSkewSecs - 1 }))).toBe('stale');
    expect(judge(datagram({ sentAt: now() + clockSkewSecs + 1 }))).toBe('stale');
  });

  test('follows announcements on a machine whose clock was never set', () => {
    clock = new ManualClock();
    clock.advance(-clock.now() + 60_000);
    expect(judge(datagram({ sentAt: 1_800_000_000 }))).toBe('127.0.0.1:4747');
  });

  test('ignores an announcement that is too short, too long, or malformed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        expect(judge(bytes)).toBe('malformed');
      }),
    );
    expect(judge(Buffer.concat([datagram(), Buffer.alloc(1)]))).toBe('malformed');
    expect(judge(Buffer.alloc(65_507, 'MSTR'))).toBe('malformed');
  });

  test('limits the number of signature checks per second', () => {
    const verdicts = new Map<string, number>();
    for (let index = 0; index < 1_000; index++) {
      const forged = new Uint8Array(datagram());
      forged[forged.length - 1]! ^= 1;
      const verdict = judge(forged);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
    }
    expect(Object.fromEntries(verdicts)).toEqual({ signature: 20, 'too many': 980 });
    expect(judge(datagram())).toBe('too many');
    clock.advance(1_000);
    expect(judge(datagram())).toBe('127.0.0.1:4747');
  });

  test('stores a limited number of announcements', () => {
    const first = datagram();
    judge(first);
    for (let index = 0; index < 1_024; index++) {
      clock.advance(200);
      expect(judge(datagram())).toBe('127.0.0.1:4747');
    }
    // The record of the first announcement was evicted, so its replay is accepted. Bounded memory takes priority over
    // rejecting every replay.
    clock.advance(200);
    expect(judge(first)).toBe('127.0.0.1:4747');
  });
});
