import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import type { Invocation } from '../config/read.ts';
import type { Changes } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';
import { Disposables } from '../disposables.ts';
import { repairRestored } from '../domain/fleet/restored.ts';
import { bootstrapOperator } from '../domain/operators/operators.ts';
import { requireSameKeys } from '../domain/replicas/fleet-keys.ts';
import type { Replica } from '../domain/replicas/replicas.ts';
import { createServerClock } from '../domain/replicas/server-clock.ts';
import type { Context } from '../domain/shared/context.ts';
import { Leases } from '../domain/shared/leases.ts';
import { type ConnectedAgents, createConnectedAgents, createGateway, type Gateway } from '../gateway/gateway.ts';
import { createTelemetry } from '../http/metrics/telemetry.ts';
import { loadApiCertificate } from '../identity/api-certificate.ts';
import { type Identity, loadIdentity } from '../identity/identity.ts';
import { finishRestore, isRestoring } from '../offline/restore-place.ts';
import { type ReplicaSync, startReplicaSync } from '../schedule/replica-sync.ts';
import { anyOperator } from '../store/queries/operators.ts';
import { Addresses, readTls } from './addresses.ts';
import { openBus } from './bus.ts';
import { createContext } from './context.ts';
import { createDomain, type Domain } from './domain.ts';
import { createHttp, ratesOf, replaceCertificate } from './http.ts';
import { fingerprintsOf, joinDatabase, OwnState, openPresence, replicaListOf, startReplicaRelease } from './replica.ts';
import { Schedules } from './schedules.ts';
import { Settings } from './settings.ts';
import { openStore, type StoreOptions } from './store.ts';

/** Creates, connects, and stops all of the orchestrator's components. */

export interface Running {
  apiUrl: string;
  apiPort: number;
  agentPort: number;
  /** The orchestrator key, which agents pin, in hex. */
  publicKey: string;
  /**
   * SHA-256 of the generated API certificate, in browser notation; null without TLS or with a configured certificate.
   */
  fingerprint: string | null;
  /** Whether the first operator was created at this startup. */
  bootstrapped: boolean;
  operators: boolean;
  /**
   * Applies the reloadable settings, and reports other settings that differ from the configuration at startup.
   * @throws Error if a certificate cannot be used; no setting is then applied
   */
  reload(next: Config, sources: Invocation['sources']): Promise<Changes>;
  /** Stops accepting work, finishes work in progress, and releases all resources. */
  stop(): Promise<void>;
}

export interface StartOptions {
  log: Logger;
  clock: Clock;
  /** Source of each configuration value, by dotted key. Keys without an entry have their default values. */
  sources?: Invocation['sources'];
  /** Called when the process cannot continue and must exit. */
  onFatal: (reason: Error) => void;
}

/**
 * Starts an orchestrator.
 * @throws LoosePermissionsError, DirectoryInUse, SchemaRefused, and listen errors, each with a message for the operator
 */
export async function startOrchestrator(config: Config, dataDir: string, options: StartOptions): Promise<Running> {
  const disposables = new Disposables();
  try {
    return await start(config, dataDir, options, disposables);
  } catch (error) {
    await disposables
      .dispose()
      .catch((fault: unknown) =>
        options.log.error({ err: fault }, 'failed to release some resources after startup failed'),
      );
    throw error;
  }
}

/** Milliseconds between checks whether another process has repaired a restored database. */
const repairCheckMs = 500;

async function start(
  config: Config,
  dataDir: string,
  options: StartOptions,
  disposables: Disposables,
): Promise<Running> {
  const { log } = options;
  const serverClock = config.database_url === null ? null : createServerClock(options.clock);
  const clock = serverClock ?? options.clock;
  const settings = new Settings(config, options.sources ?? {});
  if (await finishInterruptedRestore(dataDir)) log.warn({}, 'completed an interrupted restore');
  const identity = await loadIdentity(dataDir);
  disposables.add(await lockDirectory(dataDir, 'orchestrator'));
  const generated =
    config.tls_enabled && config.tls_cert === null ? await loadApiCertificate(dataDir, config.advertised_host) : null;
  const tls = generated ? { cert: generated.certificate, key: generated.key } : await readTls(config);
  const addresses = new Addresses(config, tls);

  const telemetry = createTelemetry({ processMetrics: true });
  const incarnation = randomBytes(16).toString('hex');
  const onCommit = (units: number, ms: number) => telemetry.committed(units, ms / 1000);
  const sameKeys: StoreOptions['requireKeys'] = (stored, secretKeys) =>
    requireSameKeys(stored, fingerprintsOf(identity, generated, secretKeys), dataDir);
  const requireKeys = config.replica.name === null ? null : sameKeys;
  const store = await openStore(
    config,
    dataDir,
    { incarnation, clock, log, onFatal: options.onFatal, onCommit, requireKeys },
    disposables,
  );
  const own = new OwnState(settings, identity);
  const joining = { config, dataDir, incarnation, identity, generated, clock: serverClock, own, options };
  const replica = await joinDatabase(store, joining, disposables);
  const { bus, nats, wire } = await openBus({ config, identity, incarnation, clock, log }, disposables);
  const connected = createConnectedAgents(clock);
  const { presence, view } = await openPresence(store, joining, connected.registry);
  if (view) nats?.expect(() => view.peers);
  const context = await createContext(store, { bus, clock, log, presence, incarnation, isReplica: view !== null });

  const leases = new Leases(context, replica?.placement);
  await repair(context, leases, clock);
  const bootstrapped = await bootstrap(context, config);
  const beatAge = view && replica && (() => options.clock.monotonic() - replica.beatAt);
  const domain = await createDomain(
    {
      ...{ context, leases, store, settings, addresses, wire, identity, dataDir, beatAge, clock, log },
      shells: connected.shells,
    },
    disposables,
  );
  own.health = domain.health;
  const gateway = createAgentGateway({ domain, identity, config, connected, clock, log });
  bus.subscribe((hint, source) => {
    // Each process counts only its own hints, so that the sum over all processes is correct.
    if (source === 'own' && hint.type === 'operation_ended') telemetry.operationEnded(hint.status);
  });
  const replicas = view && replica && replicaListOf({ context, replica, leases, view, own: connected.registry });
  const parts = {
    domain,
    store,
    gateway,
    telemetry,
    nats,
    identity,
    settings,
    addresses,
    tls,
    dataDir,
    clock,
    log,
    replicas,
  };
  const app = await createHttp(parts);
  const schedules = new Schedules({ domain, leases, transcripts: store.transcripts, settings, clock });
  const sync = view && startReplicaSync({ ...domain, view, local: gateway.local, clock, onClosed: options.onFatal });
  disposables.add(() => stop({ app, gateway, domain, schedules, sync, replica, clock, log }));
  await app.listen({ host: config.api_host, port: config.api_port });
  addresses.apiPort = (app.server.address() as AddressInfo).port;
  addresses.agentPort = await listenForAgents(gateway, config, config.agent_port);
  await schedules.start();
  if (replicas) {
    disposables.add(startReplicaRelease({ replicas, gateway, settings, clock: options.clock, log }));
    const working = { gateway, domain, config, agentPort: addresses.agentPort, ...options };
    disposables.add(own.followDraining((draining) => (draining ? drain(working) : resume(working))));
  }

  return {
    apiUrl: addresses.ownApi,
    apiPort: addresses.apiPort,
    agentPort: addresses.agentPort,
    publicKey: identity.publicKey.toString('hex'),
    fingerprint: generated?.fingerprint ?? null,
    bootstrapped,
    operators: (await store.db.get(anyOperator, {})) !== undefined,
    reload: (next, sources) =>
      reload(next, sources, { app, settings, addresses, domain, log, ownCertificate: generated !== null }),
    stop: () => disposables.dispose(),
  };
}

/** Completes the restore of a database from a backup. */
async function repair(context: Context, leases: Leases, clock: Clock): Promise<void> {
  const pause = () => new Promise<void>((resolve) => clock.after(repairCheckMs, resolve));
  const restored = await repairRestored(context, leases.lease('upkeep'), pause);
  if (restored)
    context.log.warn(
      { ...restored },
      'restored from a backup; ended unfinished operations and revoked enrollment tokens',
    );
}

/**
 * Creates the first operator, if one is configured.
 * @returns whether this call created the operator
 */
async function bootstrap(context: Context, config: Config): Promise<boolean> {
  const { bootstrap_key: public_key, bootstrap_username: username } = config;
  return public_key !== null && username !== null && (await bootstrapOperator(context, { public_key, username }));
}

interface WorkingParts extends Pick<StartOptions, 'log' | 'onFatal'> {
  readonly gateway: Gateway;
  readonly domain: Domain;
  readonly config: Config;
  /** The port on which this process listens for agents. */
  readonly agentPort: number;
}

/** Begins to move this replica's work to other replicas. Its agents follow at a steady rate. */
async function drain({ gateway, domain, log }: WorkingParts): Promise<void> {
  domain.health.draining = true;
  log.info({}, 'draining: agents and work move to other replicas; undrain or restart this replica to use it again');
  gateway.stopAccepting();
  await domain.conductor.handOver();
}

/** Takes agents and work again. If another process has taken the port for agents, the process must exit. */
async function resume({ gateway, domain, config, agentPort, log, onFatal }: WorkingParts): Promise<void> {
  try {
    await listenForAgents(gateway, config, agentPort);
    domain.health.draining = false;
    log.info({}, 'undrained: agents and work may move to this replica again');
  } catch (error) {
    onFatal(error as Error);
  }
}

interface ReloadParts {
  readonly app: FastifyInstance;
  readonly settings: Settings;
  readonly addresses: Addresses;
  readonly domain: Domain;
  readonly log: Logger;
  /** Whether the API serves a generated certificate. A configured certificate replaces it only at the next restart. */
  readonly ownCertificate: boolean;
}

async function reload(next: Config, sources: Invocation['sources'], parts: ReloadParts): Promise<Changes> {
  const { app, settings, addresses, domain, log, ownCertificate } = parts;
  // Reads the certificate before any change, so that an unreadable file does not cause a partial reload.
  const tls = ownCertificate || addresses.certificate === null ? null : await readTls(next);
  if (tls) {
    replaceCertificate(app, tls);
    addresses.certificate = tls.cert;
  }
  const changes = settings.reload(next, sources, { ownCertificate });
  app.setRates(ratesOf(settings.current));
  if (changes.now.includes('sign_in.require_bound') && settings.current.sign_in.require_bound) {
    const ended = await domain.signIn.endUnbound();
    log.info({ sessions: ended }, 'ended sign-in sessions that are not bound to a server');
  }
  return changes;
}

interface StopParts {
  readonly app: FastifyInstance;
  readonly gateway: Gateway;
  readonly domain: Domain;
  readonly schedules: Schedules;
  /** Null without replicas. */
  readonly sync: ReplicaSync | null;
  /** Null with SQLite. */
  readonly replica: Replica | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Maximum time to wait for open requests at shutdown, in milliseconds. After that, their connections are closed. */
const cutOffMs = 5_000;

/** Stops serving requests and agents, then stops all other work. */
async function stop({ app, gateway, domain, schedules, sync, replica, clock, log }: StopParts): Promise<void> {
  // Refuses new requests, and returns the current state to requests that are waiting for agents.
  app.drain();
  // Other processes take over each lease as soon as its work here has ended.
  await replica
    ?.prepareToLeave()
    .catch((error: unknown) => log.warn({ err: error }, 'failed to announce the shutdown'));
  const cutOff = clock.after(cutOffMs, () => app.server.closeAllConnections());
  await schedules.stop();
  // Without sweeps, runs whose shards stayed here would not progress until the conductor stops.
  if (replica?.placement.shared) await domain.conductor.handOver();
  // Stops terminals before the links, so that agents terminate their shells and clients receive the reason.
  await domain.terminals.stop();
  await gateway.drain();
  await sync?.stop();
  domain.waiting.close();
  await domain.conductor.stop();
  await app.close();
  cutOff();
  await gateway.close();
  await domain.remoteWrite?.stop();
  await domain.pending.close().catch((error: unknown) => log.warn({ err: error }, 'failed to record new agents'));
  await domain.refusals
    .close()
    .catch((error: unknown) => log.warn({ err: error }, 'failed to record refusals in the audit log'));
  // Stops the audit log last, so that all events are added to the chain.
  await schedules.stopAuditKeeping();
}

/**
 * Completes an interrupted `muster restore`.
 * @throws Error if its files are incomplete, or if a restore is in progress
 */
async function finishInterruptedRestore(dataDir: string): Promise<boolean> {
  if (!(await isRestoring(dataDir))) return false;
  const unlock = await lockDirectory(dataDir, 'orchestrator');
  try {
    return await finishRestore(dataDir);
  } finally {
    unlock();
  }
}

interface GatewayParts {
  readonly domain: Domain;
  readonly identity: Identity;
  readonly config: Config;
  readonly connected: ConnectedAgents;
  readonly clock: Clock;
  readonly log: Logger;
}

const createAgentGateway = ({ domain, identity, config, connected, clock, log }: GatewayParts): Gateway =>
  createGateway({
    identity,
    links: domain.links,
    bus: domain.context.bus,
    clock,
    log: log.child({ part: 'gateway' }),
    random: Math.random,
    metricsInterval: config.metrics.poll_interval,
    addresses: config.advertised_agents,
    proxyNetworks: config.proxy_protocol.networks,
    connected,
  });

/** Listens for agents on all addresses unless an address is configured. Uses only IPv4 on machines without IPv6. */
async function listenForAgents(gateway: Gateway, config: Config, port: number): Promise<number> {
  if (config.agent_host !== null) return gateway.listen(config.agent_host, port);
  try {
    return await gateway.listen('::', port);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error;
    return gateway.listen('0.0.0.0', port);
  }
}
