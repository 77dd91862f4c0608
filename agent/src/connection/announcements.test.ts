import { announcementLimits } from '@muster/protocol/wire';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
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
  it('that is signed and fresh is followed, by a pinned agent only from its own orchestrator', () => {
    expect(judge(datagram({ host: 'muster.example' }))).toBe('muster.example:4747');
    pin = orchestrator.hex;
    expect(judge(datagram())).toBe('127.0.0.1:4747');
    expect(judge(new TestAnnouncer().datagram({ sentAt: now() }))).toBe('foreign key');
  });

  it('with any bit changed is not followed', () => {
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

  it('signed by another key than the one it names is not followed', () => {
    expect(judge(new TestAnnouncer().datagram({ sentAt: now(), orchestratorKey: orchestrator.publicKey }))).toBe(
      'signature',
    );
    // Of small order: by the letter of the algorithm this signature is good for whatever it stands under.
    const identity = Buffer.alloc(32);
    identity[0] = 1;
    const forged = datagram({ orchestratorKey: identity });
    forged.set(Buffer.concat([identity, Buffer.alloc(32)]), forged.length - 64);
    expect(judge(forged)).toBe('signature');
  });

  it('is followed once', () => {
    const once = datagram();
    expect([judge(once), judge(once)]).toEqual(['127.0.0.1:4747', 'replayed']);
    clock.advance(announcementLimits.clockSkewSecs * 1000 + 1000);
    expect(judge(once)).toBe('stale');
  });

  it('may come from a clock that is ten minutes off, and no more', () => {
    const { clockSkewSecs } = announcementLimits;
    expect(judge(datagram({ sentAt: now() - clockSkewSecs }))).toBe('127.0.0.1:4747');
    expect(judge(datagram({ sentAt: now() + clockSkewSecs }))).toBe('127.0.0.1:4747');
    expect(judge(datagram({ sentAt: now() - clockSkewSecs - 1 }))).toBe('stale');
    expect(judge(datagram({ sentAt: now() + clockSkewSecs + 1 }))).toBe('stale');
  });

  it('is followed by a machine whose clock was never set', () => {
    clock = new ManualClock();
    clock.advance(-clock.now() + 60_000);
    expect(judge(datagram({ sentAt: 1_800_000_000 }))).toBe('127.0.0.1:4747');
  });

  it('too short, too long or not one at all is not followed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        expect(judge(bytes)).toBe('malformed');
      }),
    );
    expect(judge(Buffer.concat([datagram(), Buffer.alloc(1)]))).toBe('malformed');
    expect(judge(Buffer.alloc(65_507, 'MSTR'))).toBe('malformed');
  });

  it('by the thousand costs few signatures, and the next second some more', () => {
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

  it('is remembered among a bounded number of them', () => {
    const first = datagram();
    judge(first);
    for (let index = 0; index < 1_024; index++) {
      clock.advance(200);
      expect(judge(datagram())).toBe('127.0.0.1:4747');
    }
    // Pushed out, and good again: bounded memory is worth more than that.
    clock.advance(200);
    expect(judge(first)).toBe('127.0.0.1:4747');
  });
});
