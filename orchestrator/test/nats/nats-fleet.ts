import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { NatsBus, type NatsBusParts } from '../../src/bus/nats-bus.ts';
import { NatsServer } from './nats-server.ts';

export interface FleetMember {
  readonly secret?: Buffer;
  readonly own?: string;
  readonly settings?: Partial<NatsBusParts['settings']>;
  readonly clock?: NatsBusParts['clock'];
  /** Collects errors of listeners. */
  readonly complaints?: unknown[];
  /** Collects log entries. */
  readonly entries?: unknown[];
}

/** Buses of several replicas, in one process, with a NATS server. */
export class NatsFleet {
  readonly server: NatsServer;
  readonly secret = randomBytes(32);
  readonly #members: NatsBus[] = [];
  readonly #ids = new Map<NatsBus, string>();

  constructor(server: NatsServer) {
    this.server = server;
  }

  static async start(): Promise<NatsFleet> {
    const server = new NatsServer();
    await server.start();
    return new NatsFleet(server);
  }

  idOf(bus: NatsBus): string {
    return this.#ids.get(bus)!;
  }

  join({ complaints = [], entries = [], settings, clock = systemClock, ...member }: FleetMember = {}): NatsBus {
    const { secret = this.secret, own = randomBytes(16).toString('hex') } = member;
    const note = (fields: object, message: string) => void entries.push({ ...fields, message });
    const log: Log = { debug: note, info: note, warn: note, error: note };
    const bus = new NatsBus({
      settings: { url: this.server.url, credentialsFile: null, caFile: null, ...settings },
      ...{ secret, fleet: 'test', own, clock, random: Math.random, log },
      newNonce: () => randomBytes(16).toString('hex'),
      onListenerError: (error) => complaints.push(error),
    });
    this.#members.push(bus);
    this.#ids.set(bus, own);
    return bus;
  }

  /** Waits until all replicas receive each other's messages. */
  async isComplete(): Promise<void> {
    for (const bus of this.#members)
      for (const [other, id] of this.#ids) if (other !== bus) await expect.poll(() => bus.hears(id)).toBe(true);
  }

  async end(): Promise<void> {
    await Promise.all(this.#members.map((bus) => bus.close()));
    await this.server.stop();
  }
}
