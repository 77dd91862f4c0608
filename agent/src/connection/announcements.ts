import { createPublicKey, verify } from 'node:crypto';
import { isUsablePublicKey } from '@muster/protocol';
import {
  type Announcement,
  announcementLimits,
  readAnnouncement,
  type UncheckedAnnouncement,
} from '@muster/protocol/wire';

/** The reason for ignoring a datagram. */
export type Ignored = 'malformed' | 'foreign key' | 'stale' | 'replayed' | 'too many' | 'signature';
export type Verdict = { announcement: Announcement } | { ignored: Ignored; sentAt?: number };

export interface AnnouncementsOptions {
  /** Unix milliseconds. */
  now: () => number;
  monotonic: () => number;
  /** Returns the only accepted key in hexadecimal; null if any key is accepted. */
  pinnedKey: () => string | null;
}

/** Rate limit for signature checks. Anyone can send datagrams, and each valid one causes this agent to connect. */
const verifiedPerSecond = 5;
const verifiedBurst = 20;
/** Maximum number of followed announcements to store, so that each is followed only once. */
const maxRemembered = 1_024;
/** A clock before this time was never set. A machine with such a clock must not treat announcements as stale. */
const clockIsSetFrom = Date.UTC(2026, 0, 1);

/** Decides which announcements to follow. Performs the cheap checks first, and verifies the signature last. */
export class Announcements {
  private readonly options: AnnouncementsOptions;
  private readonly followed = new Map<string, number>();
  private tokens = verifiedBurst;
  private refilledAt: number;

  constructor(options: AnnouncementsOptions) {
    this.options = options;
    this.refilledAt = options.monotonic();
  }

  judge(datagram: Uint8Array): Verdict {
    const found = readAnnouncement(datagram);
    if (found === null) return { ignored: 'malformed' };
    const pin = this.options.pinnedKey();
    if (pin !== null && hexOf(found.orchestratorKey) !== pin) return { ignored: 'foreign key' };
    if (!this.isFresh(found.sentAt)) return { ignored: 'stale', sentAt: found.sentAt };
    const id = `${hexOf(found.orchestratorKey)}${hexOf(found.nonce)}`;
    if (this.followed.has(id)) return { ignored: 'replayed' };
    if (!this.mayVerify()) return { ignored: 'too many' };
    if (!isSigned(found)) return { ignored: 'signature' };
    this.remember(id, found.sentAt);
    const { host, port, orchestratorKey, sentAt, nonce } = found;
    return { announcement: { host, port, orchestratorKey, sentAt, nonce } };
  }

  private isFresh(sentAt: number): boolean {
    const now = this.options.now();
    return now < clockIsSetFrom || Math.abs(now / 1000 - sentAt) <= announcementLimits.clockSkewSecs;
  }

  private mayVerify(): boolean {
    const now = this.options.monotonic();
    this.tokens = Math.min(
      verifiedBurst,
      this.tokens + (Math.max(0, now - this.refilledAt) * verifiedPerSecond) / 1000,
    );
    this.refilledAt = now;
    if (this.tokens < 1) return false;
    this.tokens -= 1;
    return true;
  }

  private remember(id: string, sentAt: number): void {
    this.followed.set(id, sentAt);
    if (this.followed.size <= maxRemembered) return;
    for (const [each, at] of this.followed) if (!this.isFresh(at)) this.followed.delete(each);
    if (this.followed.size > maxRemembered) this.followed.delete(this.followed.keys().next().value!);
  }
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');

function isSigned({ orchestratorKey, signed, signature }: UncheckedAnnouncement): boolean {
  if (!isUsablePublicKey(orchestratorKey)) return false;
  try {
    const x = Buffer.from(orchestratorKey).toString('base64url');
    return verify(null, signed, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature);
  } catch {
    // The key is not a point on the curve.
    return false;
  }
}
