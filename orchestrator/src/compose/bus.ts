import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Bus, Hint } from '../bus/bus.ts';
import { createInProcessBus } from '../bus/in-process.ts';
import type { LiveWire } from '../bus/live-wire.ts';
import type { NatsBus } from '../bus/nats-bus.ts';
import type { NatsSettings } from '../bus/nats-connection.ts';
import type { Config } from '../config/schema.ts';
import type { Disposables } from '../disposables.ts';
import { busSecret, type Identity } from '../identity/identity.ts';

export interface BusParts {
  readonly config: Config;
  readonly identity: Identity;
  readonly incarnation: string;
  /** Its `now` is the time of the database server, which all replicas share. */
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Opens the bus. Does not wait for NATS.
 * @returns `nats` and `wire`, which relays connections: null unless the bus uses NATS
 * @throws Error if a file in the NATS settings cannot be read
 */
export async function openBus(
  { config, identity, incarnation, clock, log }: BusParts,
  disposables: Disposables,
): Promise<{ readonly bus: Bus; readonly nats: NatsBus | null; readonly wire: LiveWire | null }> {
  const onListenerError = (error: unknown, hint: Hint) =>
    log.error({ err: error, hint: hint.type }, 'bus listener failed');
  const nats = config.nats.url === null ? null : await openNats();
  const bus = nats ?? createInProcessBus(onListenerError);
  disposables.add(() => bus.close());
  const wire = config.nats.url === null ? null : await openWire();
  if (wire !== null) disposables.add(() => wire.close());
  return { bus, nats, wire };

  async function openNats(): Promise<NatsBus> {
    // Loaded on demand, so that a single process does not load the NATS client.
    const { fleetOf, NatsBus } = await import('../bus/nats-bus.ts');
    return new NatsBus({
      settings: settingsOf(config),
      ...{ secret: busSecret(identity), fleet: fleetOf(identity.publicKey), own: incarnation },
      ...{ clock, random: Math.random, newNonce: () => randomBytes(16).toString('hex') },
      ...{ log: log.child({ part: 'bus' }), onListenerError },
    });
  }

  async function openWire(): Promise<LiveWire> {
    const { fleetOf } = await import('../bus/nats-bus.ts');
    const { NatsLiveWire } = await import('../bus/nats-live-wire.ts');
    return new NatsLiveWire({
      settings: settingsOf(config),
      ...{ secret: busSecret(identity), fleet: fleetOf(identity.publicKey), own: incarnation },
      ...{ clock, random: Math.random, log: log.child({ part: 'relay' }) },
    });
  }
}

const settingsOf = ({ nats: { url, credentials_file, ca_file } }: Config): NatsSettings => ({
  ...{ url: url!, credentialsFile: credentials_file, caFile: ca_file },
});
