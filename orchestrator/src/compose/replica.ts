import { createPublicKey, hash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import { configDigest } from '../config/config-digest.ts';
import type { Config } from '../config/schema.ts';
import type { Disposables } from '../disposables.ts';
import type { ReplicaListParts } from '../domain/fleet/replica-list.ts';
import { LinkView } from '../domain/presence/link-view.ts';
import { SharedPresence } from '../domain/presence/shared-presence.ts';
import { claimKeys, type KeyFingerprints, requireFleetKeys } from '../domain/replicas/fleet-keys.ts';
import { closeOtherReplicas, joinReplicas, type Replica, type Standing } from '../domain/replicas/replicas.ts';
import type { ServerClock } from '../domain/replicas/server-clock.ts';
import type { Context, Presence } from '../domain/shared/context.ts';
import type { Health } from '../domain/shared/health.ts';
import type { Leases } from '../domain/shared/leases.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { ApiCertificate } from '../identity/api-certificate.ts';
import { configDigestKey, type Identity } from '../identity/identity.ts';
import type { SecretKeys } from '../identity/secret-keys.ts';
import { startBeats } from '../schedule/beats.ts';
import { startLinkRelease } from '../schedule/link-release.ts';
import { resetChanges } from '../store/queries/agents/agent-links.ts';
import { removeFormerReplicas } from '../store/replicas.ts';
import { version } from '../version.ts';
import type { Settings } from './settings.ts';
import type { Store } from './store.ts';

/** The state of this process as a replica. It is not ready until `health` is set. */
export class OwnState {
  readonly #settings: Settings;
  readonly #key: Buffer;
  #draining = false;
  #apply: ((draining: boolean) => Promise<void>) | null = null;
  #applied: Promise<void> = Promise.resolve();
  health: Health | null = null;

  constructor(settings: Settings, identity: Identity) {
    this.#settings = settings;
    this.#key = configDigestKey(identity);
  }

  readonly setDraining = (draining: boolean): void => {
    this.#draining = draining;
    const apply = this.#apply;
    if (apply) this.#applied = this.#applied.then(() => apply(draining));
  };

  /**
   * Calls `apply` whenever an operator drains or undrains this process, also if it was drained before this call.
   * Each call waits for the previous one.
   * @param apply must not reject
   * @returns a function that stops the calls, and waits for the last one
   */
  followDraining(apply: (draining: boolean) => Promise<void>): () => Promise<void> {
    this.#apply = apply;
    if (this.#draining) this.setDraining(true);
    return () => {
      this.#apply = null;
      return this.#applied;
    };
  }

  /** Returns what this process reports with its heartbeats. */
  readonly standing = (): Standing => ({
    ready: this.health?.serves ?? false,
    configDigest: configDigest(this.#settings.current, this.#key),
  });
}

export interface JoinParts {
  readonly config: Config;
  readonly dataDir: string;
  readonly incarnation: string;
  readonly identity: Identity;
  /** Null without TLS or with a configured certificate. */
  readonly generated: ApiCertificate | null;
  /** Null with SQLite. */
  readonly clock: ServerClock | null;
  readonly own: OwnState;
  readonly options: { readonly log: Logger; readonly onFatal: (reason: Error) => void };
}

/**
 * Registers this process with the other processes on a PostgreSQL database, and sends its heartbeats until it stops.
 * @returns null with SQLite
 * @throws KeysDiffer
 */
export async function joinDatabase(
  { db, secretKeys }: Store,
  { config, dataDir, incarnation, identity, generated, clock, own, options }: JoinParts,
  disposables: Disposables,
): Promise<Replica | null> {
  const { name } = config.replica;
  const keys = fingerprintsOf(identity, generated, secretKeys);
  if (name === null) {
    // The lock on the directory or the database proves that all previous processes have ended. A database that was
    // restored from a PostgreSQL backup still lists the process that was running when the backup was created. Agents
    // pin the identity key, so a replica with an empty data directory must not choose that key later. An operator may
    // rotate the secrets keys of a process that runs alone.
    const claims = clock === null ? [] : claimKeys({ ...keys, secrets: null });
    await closeOtherReplicas(db, incarnation, claims);
    if (clock === null) return null;
  } else {
    await requireFleetKeys(db, keys, dataDir);
    await db.alone(removeFormerReplicas, { name, incarnation });
    await db.alone(resetChanges, {});
  }
  const { log, onFatal } = options;
  const { standing, setDraining: onDraining } = own;
  const parts = { db, clock: clock!, log, incarnation, name: name ?? hostname(), version, standing, onDraining };
  const replica = await joinReplicas(parts);
  disposables.add(startBeats(replica, { clock: clock!, log, inFleet: name !== null, onClosed: onFatal }));
  return replica;
}

/** @param secretKeys null if there are none */
export const fingerprintsOf = (
  identity: Identity,
  generated: ApiCertificate | null,
  secretKeys: SecretKeys | null,
): KeyFingerprints => ({
  identity: fingerprintOf(identity.publicKey),
  api: generated && fingerprintOf(keyOf(generated)),
  secrets: secretKeys === null || secretKeys.ids.length === 0 ? null : fingerprintOf(secretKeys.ids.join()),
});

const fingerprintOf = (value: string | Buffer): string => hash('sha256', value);
const keyOf = ({ key }: ApiCertificate): Buffer => createPublicKey(key).export({ format: 'der', type: 'spki' });

/**
 * Returns which agents are connected: to this process or, with replicas, to any replica.
 * @returns `view` is null without replicas
 */
export async function openPresence(
  { db }: Store,
  { config, incarnation, clock }: Pick<JoinParts, 'config' | 'incarnation' | 'clock'>,
  own: Presence,
): Promise<{ presence: Presence; view: LinkView | null }> {
  if (clock === null || config.replica.name === null) return { presence: own, view: null };
  const view = new LinkView({ db, incarnation, now: () => clock.now(), steadyNow: () => clock.now() });
  await view.read();
  await view.readContacts();
  return { presence: new SharedPresence(own, view), view };
}

/** The data for the list of replicas that operators see and for metrics, and this replica. */
export interface ReplicaView extends ReplicaListParts {
  readonly replica: Replica;
  readonly leases: Leases;
}

export const replicaListOf = (parts: {
  context: Context;
  replica: Replica;
  leases: Leases;
  view: LinkView;
  own: Presence;
}): ReplicaView => ({
  context: parts.context,
  replica: parts.replica,
  leases: parts.leases,
  connectedTo: (incarnation) =>
    incarnation === parts.replica.incarnation ? parts.own.count : parts.view.countOf(incarnation),
});

/**
 * Releases the agents of this replica to other replicas while this replica is drained or has lost the database.
 * @returns a function that stops it
 */
export function startReplicaRelease(parts: {
  replicas: ReplicaView;
  gateway: Gateway;
  settings: Settings;
  clock: Clock;
  log: Logger;
}): () => void {
  const { replicas, gateway, settings, clock, log } = parts;
  const { replica } = replicas;
  return startLinkRelease({
    clock,
    situation: () => ({
      draining: replica.draining,
      beatAgeMs: replica.heartbeatAge(replica.incarnation),
      hasReadyPeer: replica.hasReadyPeer,
    }),
    perSecond: () => settings.current.drain.links_per_second,
    release: (count) => gateway.local.release(count),
    onBegin: ({ draining, beatAgeMs }) => {
      if (!draining)
        log.warn({ heartbeat_age_ms: beatAgeMs }, 'lost the connection to the database; agents move to other replicas');
    },
  });
}
