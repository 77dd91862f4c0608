import { hkdfSync } from 'node:crypto';
import type { LiveListener, LiveWire } from './live-wire.ts';
import { NatsConnection, type NatsParts } from './nats-connection.ts';
import { Seal } from './sealing.ts';

/** A second connection to NATS, so that large amounts of terminal output do not delay hints. */

export interface NatsLiveWireParts extends Pick<NatsParts, 'settings' | 'clock' | 'random' | 'log'> {
  /** A secret of 32 bytes that only the replicas of the fleet have. */
  readonly secret: Buffer;
  /** Identifies the fleet among those that use the same NATS server. Not secret. */
  readonly fleet: string;
  /** Incarnation of this process. */
  readonly own: string;
}

export class NatsLiveWire implements LiveWire {
  readonly #own: string;
  readonly #seal: Seal;
  readonly #connection: NatsConnection;
  readonly #subject: (to: string) => string;
  #listener: LiveListener = { received: () => {}, lost: () => {} };

  /** @throws Error if a file that the settings name cannot be read */
  constructor({ secret, fleet, own, ...parts }: NatsLiveWireParts) {
    this.#own = own;
    // A different key from that of hints, because both count their messages from 1, and the number is the nonce.
    this.#seal = new Seal(Buffer.from(hkdfSync('sha256', secret, '', 'muster live wire v1', 32)), own);
    this.#subject = (to) => `muster.${fleet}.live.${to}`;
    this.#connection = new NatsConnection({
      ...parts,
      subjects: { direct: this.#subject(own) },
      connected: () => {},
      lost: () => this.#listener.lost(),
      received: (_, bytes) => this.#receive(bytes),
    });
    this.#connection.start();
  }

  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  send(to: string, bytes: Buffer): boolean {
    return this.isConnected && this.#connection.send(this.#subject(to), this.#seal.seal(to, bytes));
  }

  listen(listener: LiveListener): void {
    this.#listener = listener;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #receive(bytes: Buffer): void {
    const opened = this.#seal.open(this.#own, bytes);
    if (typeof opened !== 'string') this.#listener.received(opened.sender, opened.plain);
  }
}
