import { stat } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { createInProcessBus } from '../bus/in-process.ts';
import type { Invocation } from '../config/read.ts';
import type { Changes } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';
import { Held } from '../disposables.ts';
import { settleRestored } from '../domain/fleet/restored.ts';
import { bootstrapOperator } from '../domain/operators/operators.ts';
import type { Context } from '../domain/shared/context.ts';
import { createConnectedAgents, createGateway, type Gateway } from '../gateway/gateway.ts';
import { createTelemetry } from '../http/metrics/telemetry.ts';
import { loadApiCertificate } from '../identity/api-certificate.ts';
import { loadIdentity } from '../identity/identity.ts';
import { finishRestore } from '../offline/restore-place.ts';
import { anyOperator } from '../store/queries/operators.ts';
import { Addresses, readTls } from './addresses.ts';
import { createContext } from './context.ts';
import { createDomain, type Domain } from './domain.ts';
import { createHttp, ratesOf, replaceCertificate } from './http.ts';
import { Schedules } from './schedules.ts';
import { Settings } from './settings.ts';
import { openStore } from './store.ts';

/** Creates and connects all parts of the orchestrator. */

export interface Running {
  apiUrl: string;
  apiPort: number;
  agentPort: number;
  /** The orchestrator key that agents pin, hex. */
  publicKey: string;
  /** SHA-256 of the generated API certificate, as browsers show it; null without TLS or with a configured certificate. */
  fingerprint: string | null;
  /** Whether this start created the first operator. */
  bootstrapped: boolean;
  operators: boolean;
  /**
   * Applies the reloadable keys. Other changed keys are only reported, compared with the configuration at the start.
   * @throws Error if a certificate cannot be used, before any key is applied
   */
  reload(next: Config, sources: Invocation['sources']): Promise<Changes>;
  /** Accepts no new work, finishes work in progress, and releases all resources. */
  stop(): Promise<void>;
}

export interface StartOptions {
  log: Logger;
  clock: Clock;
  /** Source of each configuration value, by dotted key. Missing keys have their default. */
  sources?: Invocation['sources'];
  /** Called when the process cannot continue. The caller exits. */
  onFatal: (reason: Error) => void;
}

/**
 * Starts an orchestrator.
 * @throws LoosePermissionsError, DirectoryInUse, SchemaRefused, and listen errors, each with a message for the operator
 */
export async function startOrchestrator(config: Config, dataDir: string, options: StartOptions): Promise<Running> {
  const held = new Held();
  try {
    return await start(config, dataDir, options, held);
  } catch (error) {
    await held
      .dispose()
      .catch((fault: unknown) => options.log.error({ err: fault }, 'failed to shut down cleanly after a failed start'));
    throw error;
  }
}

async function start(config: Config, dataDir: string, options: StartOptions, held: Held): Promise<Running> {
  const { log, clock } = options;
  const settings = new Settings(config, options.sources ?? {});
  if (await finishInterruptedRestore(dataDir)) log.warn({}, 'completed an interrupted restore');
  const identity = await loadIdentity(dataDir);
  held.add(await lockDirectory(dataDir, 'orchestrator'));
  const generated =
    config.tls_enabled && config.tls_cert === null ? await loadApiCertificate(dataDir, config.advertised_host) : null;
  const tls = generated ? { cert: generated.certificate, key: generated.key } : await readTls(config);
  const addresses = new Addresses(config, tls);

  const telemetry = createTelemetry({ processMetrics: true });
  const store = await openStore(
    config,
    dataDir,
    { clock, log, onFatal: options.onFatal, onCommit: (units, ms) => telemetry.committed(units, ms / 1000) },
    held,
  );
  const bus = createInProcessBus((error, hint) => log.error({ err: error, hint: hint.type }, 'bus listener failed'));
  held.add(() => bus.close());
  const connected = createConnectedAgents(clock);
  const context = await createContext(store, { bus, clock, log, presence: connected.registry });

  const restored = await settleRestored(context);
  if (restored)
    log.warn({ ...restored }, 'restored from a backup; ended unfinished operations and revoked enrollment tokens');
  const bootstrapped = await bootstrap(context, config);
  const domain = await createDomain(
    { context, store, settings, addresses, shells: connected.shells, dataDir, clock, log },
    held,
  );
  const gateway = createGateway({
    identity,
    links: domain.links,
    bus,
    clock,
    log: log.child({ part: 'gateway' }),
    random: Math.random,
    metricsInterval: config.metrics.poll_interval,
    connected,
  });
  bus.subscribe((hint) => {
    if (hint.type === 'operation_ended') telemetry.operationEnded(hint.status);
  });
  const parts = { domain, store, gateway, telemetry, identity, settings, addresses, tls, dataDir, clock, log };
  const app = await createHttp(parts);
  const schedules = new Schedules({ domain, transcripts: store.transcripts, settings, clock, dataDir });
  held.add(() => stop({ app, gateway, domain, schedules, clock, log }));
  await app.listen({ host: config.api_host, port: config.api_port });
  addresses.apiPort = (app.server.address() as AddressInfo).port;
  addresses.agentPort = await listenForAgents(gateway, config);
  await schedules.start();

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
    stop: () => held.dispose(),
  };
}

/** Creates the first operator, if one is configured. @returns whether this call created it */
async function bootstrap(context: Context, config: Config): Promise<boolean> {
  const { bootstrap_key: public_key, bootstrap_username: username } = config;
  return public_key !== null && username !== null && (await bootstrapOperator(context, { public_key, username }));
}

interface ReloadParts {
  readonly app: FastifyInstance;
  readonly settings: Settings;
  readonly addresses: Addresses;
  readonly domain: Domain;
  readonly log: Logger;
  /** Whether the API serves a generated certificate. Configured files replace it only at a start. */
  readonly ownCertificate: boolean;
}

async function reload(next: Config, sources: Invocation['sources'], parts: ReloadParts): Promise<Changes> {
  const { app, settings, addresses, domain, log, ownCertificate } = parts;
  // Read the files before any change, so that an unreadable file does not leave a partial reload.
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
  readonly clock: Clock;
  readonly log: Logger;
}

/** Milliseconds that a stop waits for open requests before it closes them, so that an idle client does not delay the stop. */
const cutOffMs = 5_000;

/** Stops the parts that serve requests and agents, and those that write on their behalf. */
async function stop({ app, gateway, domain, schedules, clock, log }: StopParts): Promise<void> {
  // First stops accepting requests, and answers requests that wait for agents with the current state.
  app.drain();
  const cutOff = clock.after(cutOffMs, () => app.server.closeAllConnections());
  await schedules.stop();
  // Terminals stop before the links close, so that agents end their shells and clients receive the reason.
  await domain.terminals.stop();
  await gateway.drain();
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
  // The audit log stops last, so that the events of all other parts are added to the chain.
  await schedules.stopAuditKeeping();
}

/** Completes an interrupted `muster restore`. @throws Error if its files are incomplete, or it is still running */
async function finishInterruptedRestore(dataDir: string): Promise<boolean> {
  if (!(await stat(join(dataDir, '.restoring')).catch(() => null))) return false;
  const unlock = await lockDirectory(dataDir, 'orchestrator');
  try {
    return await finishRestore(dataDir);
  } finally {
    unlock();
  }
}

/** Listens on all addresses unless one is configured. Falls back to IPv4 on machines without IPv6. */
async function listenForAgents(gateway: Gateway, config: Config): Promise<number> {
  if (config.agent_host !== null) return gateway.listen(config.agent_host, config.agent_port);
  try {
    return await gateway.listen('::', config.agent_port);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error;
    return gateway.listen('0.0.0.0', config.agent_port);
  }
}
