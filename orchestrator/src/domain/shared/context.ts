import type { Bus } from '../../bus/bus.ts';
import type { SecretKeys } from '../../identity/secret-keys.ts';
import type { Log } from '../../log.ts';
import type { Database } from '../../store/database.ts';

/** What the domain is given: everything it cannot decide by itself. */
export interface Context {
  readonly db: Database;
  readonly bus: Bus;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** A ULID, larger than every one this process made before. */
  readonly newId: () => string;
  /** Secure random bytes. */
  readonly randomBytes: (length: number) => Buffer;
  readonly presence: Presence;
  /** What secrets are encrypted under. */
  readonly secretKeys: SecretKeys;
  readonly log: Log;
}

/** Who is connected now, as the gateway knows it. */
export interface Presence {
  isConnected(nodeId: string): boolean;
  /** How many are connected. */
  readonly count: number;
  /** Unix seconds of the last sign of life; null when not connected. */
  lastHeardAt(nodeId: string): number | null;
  /** By how many seconds the clock of a connected agent is ahead, as far as it told; else 0. */
  clockAheadSecs(nodeId: string): number;
}

/** Who asks: an operator's session, or the product itself. */
export interface Actor {
  readonly type: 'operator' | 'agent' | 'system';
  readonly id: string;
  readonly name: string;
  /** SHA-256 (hex) of the token that a request came with. What it changes is only written while that session is live. */
  readonly session?: string;
}

export const systemActor: Actor = { type: 'system', id: '', name: '' };

export const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
