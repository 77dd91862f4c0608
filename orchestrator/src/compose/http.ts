import { createPrivateKey, sign } from 'node:crypto';
import type { Server as TlsServer } from 'node:tls';
import { agentConfigJsonSchema, agentConfigSchemaId } from '@muster/protocol/agent-config';
import { announcementSigned } from '@muster/protocol/wire';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import type { NatsBus } from '../bus/nats-bus.ts';
import { type Config, configJsonSchema, configSchemaId } from '../config/schema.ts';
import { createDiscovery } from '../domain/agents/discovery.ts';
import { createCensus } from '../domain/fleet/fleet-counts.ts';
import { describeSettings } from '../domain/fleet/settings.ts';
import { createAnnouncer } from '../gateway/announcer.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { createApp } from '../http/app.ts';
import { readConsoleFiles } from '../http/console/console-files.ts';
import { readInstallFiles } from '../http/install/install-files.ts';
import type { Telemetry } from '../http/metrics/telemetry.ts';
import { channelHandlers } from '../http/routes/channels.ts';
import { discoveryHandlers } from '../http/routes/discovery.ts';
import { driftHandlers } from '../http/routes/drift.ts';
import { enrollmentHandlers } from '../http/routes/enrollment.ts';
import { eventHandlers } from '../http/routes/events.ts';
import { replicaHandlers } from '../http/routes/fleet/replicas.ts';
import { settingsHandlers } from '../http/routes/fleet/settings.ts';
import { statusHandlers } from '../http/routes/fleet/status.ts';
import { contextHandlers } from '../http/routes/index.ts';
import { metricsHandlers } from '../http/routes/metrics.ts';
import { operationHandlers } from '../http/routes/operations.ts';
import { operatorHandlers } from '../http/routes/operators/operators.ts';
import { sessionHandlers } from '../http/routes/operators/sessions.ts';
import { runHandlers } from '../http/routes/runs.ts';
import { terminalHandlers } from '../http/routes/terminals.ts';
import { SessionCookie } from '../http/server/authentication.ts';
import type { Handlers } from '../http/server/handlers.ts';
import { refuseGrowth } from '../http/server/low-disk.ts';
import type { Rates } from '../http/server/rate.ts';
import { recordRefused } from '../http/server/refused-requests.ts';
import type { Identity } from '../identity/identity.ts';
import { version } from '../version.ts';
import type { Addresses, Tls } from './addresses.ts';
import type { Domain } from './domain.ts';
import type { ReplicaView } from './replica.ts';
import type { Settings } from './settings.ts';
import type { Store } from './store.ts';

export interface HttpParts {
  readonly domain: Domain;
  readonly store: Store;
  readonly gateway: Gateway;
  readonly telemetry: Telemetry;
  /** Null unless the bus uses NATS. */
  readonly nats: Pick<NatsBus, 'state'> | null;
  readonly identity: Identity;
  readonly settings: Settings;
  readonly addresses: Addresses;
  readonly tls: Tls | null;
  readonly dataDir: string;
  /** Null without replicas. */
  readonly replicas: ReplicaView | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Number of poll intervals after which a sample is no longer exported to Prometheus. */
const stalePolls = 3;

/** Creates the server for the API and the console, without listening yet. */
export async function createHttp(parts: HttpParts): Promise<FastifyInstance> {
  const { domain, telemetry, settings, tls, clock, log } = parts;
  const { bus, db } = domain.context;
  const config = settings.current;
  const install = await readInstallFiles(config.packages_dir, process.execPath);
  const consoleFiles = await readConsoleFiles([process.execPath, ...process.argv.slice(1, 2)]).catch(
    (error: unknown) => {
      log.warn({ err: error }, 'failed to read the console files; the console is not served');
      return null;
    },
  );
  const cookie = new SessionCookie(parts.identity.publicKey.toString('hex').slice(0, 16));
  const app: FastifyInstance = createApp({
    handlers: { ...createHandlers(parts, install.size > 0), ...sessionHandlers(domain.signIn, cookie) },
    sessions: domain.signIn,
    cookie,
    terminals: domain.terminals,
    clock,
    refused: recordRefused(domain.refusals),
    log: log.child({ part: 'api' }),
    version,
    configSchemas: { [configSchemaId]: configJsonSchema, [agentConfigSchemaId]: agentConfigJsonSchema },
    ready: () => domain.health.isReady(),
    requireDiskSpace: (route) => {
      if (domain.disk.low && db.kind === 'sqlite') refuseGrowth(route);
    },
    telemetry: {
      answered: telemetry.answered,
      scrape: scrapeOf(parts, () => app),
      agents: (filter) => domain.metrics.standings(filter, stalePolls * config.metrics.poll_interval),
      token: () => settings.current.metrics_token,
    },
    trustedProxies: config.trusted_proxies,
    proxyNetworks: config.proxy_protocol.networks,
    publicUrl: config.public_url,
    limits: { rates: ratesOf(config) },
    install,
    ...(config.console ? { console: consoleFiles } : {}),
    trustProxyTls: config.trust_proxy_tls,
    ...(tls ? { tls } : {}),
  });
  bus.subscribe((hint) => {
    if (hint.type === 'operator_removed') app.cutOff(hint.operator_id);
    else if (hint.type === 'session_ended') app.sessionEnded(hint.token_hash, hint.renewed_as);
  });
  return app;
}

/**
 * Replaces the certificate for new connections.
 * @throws Error if the certificate cannot be used
 */
export function replaceCertificate(app: FastifyInstance, tls: Tls): void {
  (app.server as unknown as TlsServer).setSecureContext({ ...tls, minVersion: 'TLSv1.2' });
}

export const ratesOf = ({ rates }: Config): Rates => ({
  signIn: { perMinute: rates.sign_in_per_minute, burst: rates.sign_in_burst },
  sessionPerSecond: rates.session_per_second,
});

function createHandlers(
  parts: HttpParts,
  hasPackages: boolean,
): Omit<Handlers, keyof ReturnType<typeof sessionHandlers>> {
  const { domain, store, settings, addresses, identity, dataDir, replicas } = parts;
  const { context, health } = domain;
  const publicKey = identity.publicKey.toString('hex');
  return {
    ...contextHandlers(context),
    ...operatorHandlers(context, domain.signIn, (reached) => addresses.publicUrl ?? reached ?? addresses.api),
    ...enrollmentHandlers(context, () => addresses.enrollment(publicKey, hasPackages)),
    ...discoveryHandlers(discoveryOf(parts)),
    ...operationHandlers(context, domain.waiting, domain.liveOutput),
    ...runHandlers(context, domain.waiting, domain.conductor),
    ...driftHandlers(context, domain.waiting),
    ...terminalHandlers(domain.terminals),
    ...metricsHandlers(domain.metrics),
    ...settingsHandlers(() => describeSettings({ data_dir: dataDir, ...settings.current }, settings.sources)),
    ...eventHandlers(context, domain.live),
    ...channelHandlers(context, domain.deliver, domain.channelRule),
    ...replicaHandlers(replicas),
    ...statusHandlers({
      publicKey,
      version,
      databaseKind: store.db.kind,
      writable: () => health.isWritable(),
      secretsReadable: () => health.secretsReadable,
      samples: () => store.samples.stats(),
      disk: () => domain.disk.space,
      bus: () => parts.nats?.state ?? null,
      replicas: () => replicas?.replica.troubles ?? [],
    }),
  };
}

function discoveryOf({ domain, settings, addresses, identity }: HttpParts) {
  const identityKey = createPrivateKey(identity.privateKeyPem);
  return createDiscovery(domain.context, {
    announcer: createAnnouncer(),
    port: settings.current.discovery.port,
    agents: () => addresses.agents,
    publicKey: identity.publicKey,
    sign: (encoded) => sign(null, announcementSigned(encoded), identityKey),
  });
}

function scrapeOf({ domain, store, gateway, telemetry, nats, replicas }: HttpParts, app: () => FastifyInstance) {
  const sources = {
    census: createCensus(domain.context),
    ready: () => domain.health.isReady(),
    levels: () => ({
      connectedAgents: gateway.presence.count,
      dispatchQueue: gateway.backlog.agents,
      dispatchBytes: gateway.backlog.bytes,
      database: store.db.stats(),
      recordedBytes: store.transcripts.recorded,
      samples: { ...store.samples.stats(), passedOver: domain.metrics.passedOver },
      disk: domain.disk.space,
      connections: { api: app().connections.stats, agentsDropped: gateway.dropped },
      remoteWrite: domain.remoteWrite?.stats() ?? null,
      bus: nats?.state ?? null,
      replica: replicas && {
        states: replicas.replica.states,
        troubles: replicas.replica.troubles.map(({ trouble }) => trouble),
        isDraining: replicas.replica.draining,
        heartbeatAgeSecs: replicas.replica.heartbeatAge(replicas.replica.incarnation) / 1000,
        closed: replicas.replica.closed,
        leases: replicas.leases.counts,
      },
    }),
  };
  return () => telemetry.scrape(sources);
}
