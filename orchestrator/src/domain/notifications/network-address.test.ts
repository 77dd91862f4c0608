import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codePoint } from '../../../../protocol/test/code-point.ts';
import { hostOf } from './channel-config.ts';
import { classOfAddress, mayReach } from './network-address.ts';

describe('classOfAddress', () => {
  test.each([
    ['8.8.8.8', 'public'],
    ['2606:4700::1111', 'public'],
    ['127.0.0.1', 'private'],
    ['::1', 'private'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['fd12:3456::1', 'private'],
    ['4000::1', 'private'],
    ['0.0.0.0', 'refused'],
    ['0.1.2.3', 'refused'],
    ['169.254.169.254', 'refused'],
    ['169.254.0.1', 'refused'],
    ['100.100.100.200', 'refused'],
    ['168.63.129.16', 'refused'],
    ['192.0.0.192', 'refused'],
    ['224.0.0.251', 'refused'],
    ['255.255.255.255', 'refused'],
    ['240.0.0.1', 'refused'],
    ['::', 'refused'],
    ['fe80::1', 'refused'],
    ['fe80::1%eth0', 'refused'],
    ['fec0::1', 'refused'],
    ['ff02::1', 'refused'],
    ['fd00:ec2::254', 'refused'],
    ['fd20:ce::254', 'refused'],
    ['64:ff9b:1::a9fe:a9fe', 'refused'],
    ['2001:0:1::1', 'refused'],
    ['hooks.example', 'refused'],
    ['', 'refused'],
    // Only some parsers accept these notations.
    ['0x7f.1', 'refused'],
    ['2130706433', 'refused'],
    ['010.0.0.1', 'refused'],
  ])('classifies %s as %s', (address, expected) => expect(classOfAddress(address)).toBe(expected));
});

const byte = fc.integer({ min: 0, max: 255 });
const ipv4 = fc.tuple(byte, byte, byte, byte);
const forbidden4 = fc.oneof(
  fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
  fc.tuple(fc.constant(0), byte, byte, byte),
  fc.tuple(fc.integer({ min: 224, max: 255 }), byte, byte, byte),
  fc.constant<[number, number, number, number]>([100, 100, 100, 200]),
);
type Bytes = [number, number, number, number];
const hex = (high: number, low: number) => ((high << 8) | low).toString(16);
const tail = ([a, b, c, d]: Bytes) => `${hex(a, b)}:${hex(c, d)}`;

/** Returns every notation of an IPv4 address in a URL, alone or embedded in an IPv6 address. */
const spellings: ((bytes: Bytes) => string)[] = [
  (b) => b.join('.'),
  ([a, b, c, d]) => String(((a << 24) | (b << 16) | (c << 8) | d) >>> 0),
  ([a, b, c, d]) => `0x${(((a << 24) | (b << 16) | (c << 8) | d) >>> 0).toString(16)}`,
  (b) => b.map((part) => `0${part.toString(8)}`).join('.'),
  (b) => b.map((part) => `0x${part.toString(16)}`).join('.'),
  ([a, b, c, d]) => `${a}.${b}.${(c << 8) | d}`,
  (b) => `${b.join('.')}.`,
  (b) => [...b.join('.')].map((letter) => (letter === '.' ? '。' : letter)).join(''),
  (b) => `[::ffff:${b.join('.')}]`,
  (b) => `[::ffff:${tail(b)}]`,
  (b) => `[0:0:0:0:0:ffff:${tail(b)}]`,
  (b) => `[::${tail(b)}]`,
  (b) => `[::ffff:0:${tail(b)}]`,
  (b) => `[64:ff9b::${b.join('.')}]`,
  (b) => `[2002:${tail(b)}::1]`,
  (b) => `[2606:4700::5efe:${tail(b)}]`,
  (b) => `[2606:4700::200:5efe:${tail(b)}]`,
];
const spelling = fc.constantFrom(...spellings);
const hostIn = (spelled: string): string => hostOf(new URL(`http://${spelled}/`));

describe('address notations', () => {
  test('refuses every notation of a refused address', () => {
    fc.assert(
      fc.property(forbidden4, spelling, (bytes, spell) => {
        expect(mayReach(hostIn(spell(bytes)), { denyPrivate: false })).toBe(false);
      }),
      { numRuns: 1000 },
    );
  });

  test('never classifies an embedded IPv4 address less strictly than the address itself', () => {
    const severity = { public: 0, private: 1, refused: 2 };
    fc.assert(
      fc.property(ipv4, spelling, (bytes, spell) => {
        // The IPv4-compatible form of 0.0.0.1 is ::1, which is loopback.
        const spelled = hostIn(spell(bytes));
        if (spelled === '::1') return;
        expect(severity[classOfAddress(spelled)]).toBeGreaterThanOrEqual(severity[classOfAddress(bytes.join('.'))]);
      }),
      { numRuns: 1000 },
    );
  });

  test('allows only public addresses if private addresses are denied', () => {
    const ipv6 = fc
      .tuple(...Array.from({ length: 8 }, () => fc.integer({ min: 0, max: 0xffff })))
      .map((groups) => groups.map((group) => group.toString(16)).join(':'));
    fc.assert(
      fc.property(
        fc.oneof(
          ipv4.map((bytes) => bytes.join('.')),
          ipv6,
        ),
        (address) => {
          expect(mayReach(address, { denyPrivate: true })).toBe(classOfAddress(address) === 'public');
          if (mayReach(address, { denyPrivate: true })) expect(mayReach(address, { denyPrivate: false })).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('classifies any text without throwing', () => {
    fc.assert(fc.property(fc.string({ unit: codePoint }), (text) => void classOfAddress(text)));
  });
});
