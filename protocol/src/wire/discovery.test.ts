import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Announcement,
  announcementLimits,
  announcementSigned,
  encodeAnnouncement,
  isAnnounceableHost,
  readAnnouncement,
} from './discovery.ts';

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const hosts = fc.oneof(
  fc.domain().filter((name) => name.length <= 253),
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom('a', 'under_score', 'muster.example.', `${'a'.repeat(63)}.${'b'.repeat(63)}`),
);
const announcements: fc.Arbitrary<Announcement> = fc.record({
  host: hosts,
  port: fc.integer({ min: 1, max: 65_535 }),
  orchestratorKey: bytes(32),
  sentAt: fc.maxSafeNat(),
  nonce: bytes(16),
});
const datagramOf = (announcement: Announcement, signature: Uint8Array) =>
  Buffer.concat([encodeAnnouncement(announcement), signature]);

describe('announcement', () => {
  test('decodes the fields and the signed bytes of an encoded announcement', () => {
    fc.assert(
      fc.property(announcements, bytes(64), (announcement, signature) => {
        const { signed, signature: read, ...rest } = readAnnouncement(datagramOf(announcement, signature))!;
        expect(rest).toEqual(announcement);
        expect(Buffer.from(read)).toEqual(Buffer.from(signature));
        expect(Buffer.from(signed)).toEqual(Buffer.from(announcementSigned(encodeAnnouncement(announcement))));
      }),
    );
  });

  test('encodes a decoded announcement to the same bytes', () => {
    const nearly = fc
      .tuple(announcements, bytes(64), fc.nat(), fc.nat({ max: 255 }))
      .map(([announcement, signature, at, value]) => {
        const datagram = datagramOf(announcement, signature);
        datagram[at % datagram.length] = value;
        return datagram;
      });
    let read = 0;
    fc.assert(
      fc.property(fc.oneof(nearly, fc.uint8Array({ maxLength: 600 }).map(Buffer.from)), (datagram) => {
        const found = readAnnouncement(datagram);
        if (found === null) return;
        read++;
        expect(datagramOf(found, found.signature)).toEqual(Buffer.from(datagram));
      }),
      { numRuns: 500 },
    );
    expect(read).toBeGreaterThan(50);
  });

  test('refuses announcements with other versions, truncated announcements, and trailing bytes', () => {
    fc.assert(
      fc.property(announcements, bytes(64), fc.integer({ min: 1, max: 80 }), (announcement, signature, more) => {
        const datagram = datagramOf(announcement, signature);
        expect(readAnnouncement(datagram.subarray(0, -more))).toBe(null);
        expect(readAnnouncement(Buffer.concat([datagram, Buffer.alloc(more)]))).toBe(null);
        const newer = Buffer.from(datagram);
        newer[4] = 2;
        expect(readAnnouncement(newer)).toBe(null);
      }),
    );
  });

  test('accepts only names and addresses as the host of an announcement', () => {
    for (const host of ['web-1.example', '192.0.2.1', '2001:db8::1', '::1', 'x'.repeat(63)])
      expect(isAnnounceableHost(host), host).toBe(true);
    const longest = `${'a.'.repeat(126)}a`;
    expect(datagramOf({ ...sample, host: longest }, new Uint8Array(64))).toHaveLength(announcementLimits.longestBytes);
    for (const host of [
      '',
      ' ',
      'a b',
      '-a',
      'a..b',
      'fe80::1%eth0',
      'x'.repeat(64),
      `${longest}.b`,
      'ü.example',
      'a\n',
      '[::1]',
    ])
      expect(isAnnounceableHost(host), host).toBe(false);
  });

  test('refuses to encode fields that the format cannot represent', () => {
    for (const wrong of [{ host: 'a b' }, { port: 0 }, { port: 65_536 }, { sentAt: -1 }, { nonce: new Uint8Array(15) }])
      expect(() => encodeAnnouncement({ ...sample, ...wrong })).toThrow(RangeError);
  });
});

const sample: Announcement = {
  host: 'muster.example',
  port: 4747,
  orchestratorKey: new Uint8Array(32),
  sentAt: 1_795_000_000,
  nonce: new Uint8Array(16),
};
