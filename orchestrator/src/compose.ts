import { createPrivateKey, hash, randomBytes, randomFillSync, sign, X509Certificate } from 'node:crypto';
import { readFile, stat, statfs } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Server as TlsServer } from 'node:tls';
import { MusterError } from '@muster/protocol';
import { agentConfigJsonSchema, agentConfigSchemaId } from '@muster/protocol/agent-config';
import { announcementSigned } from '@muster/protocol/wire';
import type { Logger } from 'pino';
import { decodeTime, monotonicFactory } from 'ulid';
import { createInProcessBus } from './bus/in-process.ts';
import type { Clock } from './clock.ts';
import { type Config, configJsonSchema, configSchemaId, type Invocation } from './config.ts';
import { createDeliver } from './deliver/deliver.ts';
import { createRemoteWrite } from './deliver/remote-write.ts';
import { Held } from './disposables.ts';
import { createAgentLinks } from './domain/agent-link/agent-link-service.ts';
import { createDiscovery } from './domain/agents/discovery.ts';
import { installSource, noteOnAgents } from './domain/agents/enrollment-line.ts';
import { createPendingList } from './domain/agents/pending-list.ts';
import { announcingEvents } from './domain/audit/announce-events.ts';
import { createSequencer } from './domain/audit/event-sequencer.ts';
import type { EventConsumer } from './domain/audit/placed-event.ts';
import { createRefusals } from './domain/audit/refusals.ts';
import { reportRoom } from './domain/fleet/disk-space.ts';
import { createCensus } from './domain/fleet/fleet-counts.ts';
import { createMetrics } from './domain/fleet/metrics.ts';
import { settleRestored } from './domain/fleet/restored.ts';
import { describeSettings } from './domain/fleet/settings.ts';
import { createLiveEvents } from './domain/live/live-events.ts';
import { createModuleDocuments } from './domain/modules/modules.ts';
import { notificationsOf } from './domain/notifications/notifications.ts';
import { createLiveOutput } from './domain/operations/live-output.ts';
import { createWaiting } from './domain/operations/operation-waiting.ts';
import { bootstrapOperator } from './domain/operators/operators.ts';
import { isOwnServer, ownServers } from './domain/operators/own-servers.ts';
import { createSignIn, type SignInRules } from './domain/operators/sign-in.ts';
import { createRunConductor } from './domain/runs/run-conductor.ts';
import type { Context } from './domain/shared/context.ts';
import { createLease } from './domain/shared/leases.ts';
import { pruneTerminals } from './domain/terminals/terminal-retention.ts';
import { createTerminals } from './domain/terminals/terminals.ts';
import { createAnnouncer } from './gateway/announcer.ts';
import { createGateway, type Gateway } from './gateway/gateway.ts';
import { createApp } from './http/app.ts';
import { readConsoleFiles } from './http/console/console-files.ts';
import { readInstallFiles } from './http/install/install-files.ts';
import { createTelemetry, type Telemetry } from './http/metrics/telemetry.ts';
import { agentHandlers } from './http/routes/agents.ts';
import { auditHandlers } from './http/routes/audit.ts';
import { discoveryHandlers } from './http/routes/discovery.ts';
import { eventHandlers } from './http/routes/events.ts';
import { fleetHandlers } from './http/routes/fleet.ts';
import { metricsHandlers } from './http/routes/metrics.ts';
import { moduleHandlers } from './http/routes/modules.ts';
import { notificationHandlers } from './http/routes/notifications.ts';
import { operationHandlers } from './http/routes/operations.ts';
import { secretHandlers } from './http/routes/secrets.ts';
import { settingsHandlers } from './http/routes/settings.ts';
import { signInHandlers } from './http/routes/sign-in.ts';
import { statusHandlers } from './http/routes/status.ts';
import { terminalHandlers } from './http/routes/terminals.ts';
import { windowHandlers } from './http/routes/windows.ts';
import { refuseGrowth } from './http/server/low-disk.ts';
import type { Rates } from './http/server/rate.ts';
import { recordRefused } from './http/server/refused-requests.ts';
import { loadApiCertificate } from './identity/api-certificate.ts';
import { loadIdentity } from './identity/identity.ts';
import { lockDirectory } from './identity/instance-lock.ts';
import { loadSecretKeys } from './identity/secret-keys.ts';
import { finishRestore } from './offline/restore-place.ts';
import { type Changes, changesOf, reloaded, sourcesAfter } from './reload.ts';
import { type AuditKeeping, startAuditKeeping } from './schedule/audit-keeping.ts';
import { type DiskGuard, startDiskGuard } from './schedule/disk-guard.ts';
import { type DriftSweep, startDriftSweep } from './schedule/drift-sweep.ts';
import { type Outbox, startOutbox } from './schedule/outbox.ts';
import { type RemoteWrite, startRemoteWrite } from './schedule/remote-write.ts';
import { startUpkeep, type Upkeep } from './schedule/upkeep.ts';
import { createRecentScreen } from './screen/recent-screen.ts';
import { type DatabasePlace, openDatabase } from './store/open-database.ts';
import { anyChannel } from './store/queries/channels.ts';
import { lastDriftId } from './store/queries/drift.ts';
import { lastOperationId } from './store/queries/operations.ts';
import { anyOperator } from './store/queries/operators.ts';
import { anySecret } from './store/queries/secrets.ts';
import { openSamples } from './store/samples/open-samples.ts';
import { openTranscripts } from './store/transcripts/transcripts.ts';
import { version } from './version.ts';

/** Creates and connects all parts of the orchestrator. */

export interface Running {
  apiUrl: string;
  apiPort: number;
  agentPort: number;
  /** Hex. Agents pin it. */
  publicKey: string;
  /** SHA-256 of the generated API certificate, as browsers show it; null without TLS or with a configured certificate. */
  fingerprint: string | null;
  /** Whether this start created the first operator. */
  bootstrapped: boolean;
  operators: boolean;
  /**
   * Applies the reloadable keys. Other changed keys are only reported, compared with the configuration at the start.
   * @throws Error if a certificate cannot be used; then nothing has changed
   */
  reload(next: Config, sources: Invocation['sources']): Promise<Changes>;
  /** Accepts no new work, finishes work in progress, and releases all resources. */
  stop(): Promise<void>;
}

export interface StartOptions {
  log: Logger;
  clock: Clock;
  /** Source of each configuration value, by dotted key. Keys that are missing have their default. */
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

/** Samples older than this many poll intervals are not exported to Prometheus. */
const stalePolls = 3;

/** Requests still open this long after the stop began are cut off, so that an idle client does not delay the stop. */
const cutOffMs = 5_000;

async function start(config: Config, dataDir: string, options: StartOptions, held: Held): Promise<Running> {
  const { log, clock } = options;
  /** The configuration in force. Reloadable values are read from here. */
  let current = config;
  let sources = options.sources ?? {};
  if (await finishCutOff(dataDir)) log.warn({}, 'completed an interrupted restore');
  const identity = await loadIdentity(dataDir);
  held.add(await lockDirectory(dataDir, 'orchestrator'));
  const publicKey = identity.publicKey.toString('hex');
  const certificate =
    config.tls_enabled && config.tls_cert === null ? await loadApiCertificate(dataDir, config.advertised_host) : null;
  const tls = await tlsOf(config, certificate);

  let telemetry: Telemetry | null = null;
  const place = placeOfDatabase(config, dataDir);
  const db = await openDatabase(place, {
    now: () => clock.now(),
    onFatal: options.onFatal,
    onCommit: (units, ms) => telemetry?.committed(units, ms / 1000),
    onMigrated: (report) => {
      if (report.from !== report.to) log.info({ ...report }, 'database schema migrated');
    },
    log: log.child({ part: 'database' }),
  });
  held.add(() => db.close());
  const samples = await openSamples(place, dataDir, config.metrics.retention, {
    clock,
    log: log.child({ part: 'database' }),
  });
  held.add(() => samples.close());
  const secretKeys = await loadSecretKeys({
    dataDir,
    file: config.secrets_key_file,
    env: process.env,
    holdsSecrets: async () => ((await db.get(anySecret, {})) ?? (await db.get(anyChannel, {}))) !== undefined,
  });
  if (secretKeys.rotationCutOff)
    log.warn(
      { keys: secretKeys.ids },
      'secrets key rotation is incomplete; all secrets can be read. Run `muster secrets rotate-key` to complete it',
    );
  const bus = createInProcessBus((error, hint) => log.error({ err: error, hint: hint.type }, 'bus listener failed'));
  held.add(() => bus.close());
  let gateway: Gateway | null = null;
  const ulid = monotonicFactory(bufferedRandom());
  // Ids keep growing over a restart, even if the clock was set back, because operations run in the order of their ids.
  // A finished drift check leaves only its drift record, so its id is read from there.
  const ids = [(await db.get(lastOperationId, {}))?.operation_id, (await db.get(lastDriftId, {}))?.drift_id];
  const newestTime = Math.max(0, ...ids.filter((id) => id !== undefined).map((id) => decodeTime(id) + 1));
  const context: Context = {
    db: announcingEvents(db, bus),
    bus,
    log,
    now: () => clock.now(),
    newId: () => ulid(Math.max(clock.now(), newestTime)),
    randomBytes: (length) => randomBytes(length),
    secretKeys,
    presence: {
      get count() {
        return gateway?.presence.count ?? 0;
      },
      isConnected: (nodeId) => gateway?.presence.isConnected(nodeId) ?? false,
      lastHeardAt: (nodeId) => gateway?.presence.lastHeardAt(nodeId) ?? null,
      clockAheadSecs: (nodeId) => gateway?.presence.clockAheadSecs(nodeId) ?? 0,
    },
  };

  const restored = await settleRestored(context);
  if (restored)
    log.warn({ ...restored }, 'restored from a backup; ended unfinished operations and revoked enrollment tokens');
  let bootstrapped = false;
  if (config.bootstrap_key !== null && config.bootstrap_username !== null)
    bootstrapped = await bootstrapOperator(context, {
      public_key: config.bootstrap_key,
      username: config.bootstrap_username,
    });

  const transcripts = await openTranscripts(join(dataDir, 'terminals'), clock);
  held.add(() => transcripts.stop());
  const terminals = createTerminals(context, {
    clock,
    transcripts,
    // The gateway is created below. No shell is opened before the API listens.
    shells: { open: (wish, events) => (gateway as Gateway).shells.open(wish, events) },
    recentScreen: createRecentScreen({ transcripts, clock, log }),
    rules: {
      get reattachSecs() {
        return current.terminals.reattach_secs;
      },
      get idleLimitSecs() {
        return current.terminals.idle_limit;
      },
      get transcriptLimit() {
        return current.terminals.transcript_limit;
      },
      get recordInput() {
        return current.terminals.record_input;
      },
    },
  });
  held.add(() => terminals.stop());
  await terminals.interruptLeftovers();
  const refusals = createRefusals(context);
  let servedCertificate = tls?.cert ?? null;
  let apiPort = config.api_port;
  const signInRules: SignInRules = {
    tokenLifeSecs: config.session_token_expiry_secs,
    get requireBound() {
      return current.sign_in.require_bound;
    },
    isOwnServer: (server, loopback) =>
      isOwnServer(
        ownServers({
          certificate: servedCertificate,
          apiHost: config.api_host,
          apiPort,
          advertisedHost: config.advertised_host,
          publicUrl: config.public_url,
          origins: current.sign_in.origins,
        }),
        server,
        loopback,
      ),
  };
  const signIn = createSignIn(context, refusals, signInRules, clock);
  if (signInRules.requireBound) await signIn.endUnbound();
  const pending = createPendingList(context, config.pending_capacity);
  held.add(() => signIn.close());
  const live = createLiveEvents(context, clock, signIn);
  held.add(() => live.close());
  const waiting = createWaiting(context);
  const documents = createModuleDocuments(context);
  const liveOutput = createLiveOutput(context);
  held.add(() => liveOutput.close());
  const remoteWrite = remoteWriteOf(context, clock, config);
  const disk: DiskGuard = startDiskGuard(context, clock, {
    room: async () => {
      const { bsize, blocks, bavail } = await statfs(dataDir);
      return { size: bsize * blocks, free: bsize * bavail };
    },
    reserve: () => current.disk.reserve,
  });
  held.add(() => disk.stop());
  await disk.look();
  const metrics = createMetrics(context, samples, config.metrics.retention, remoteWrite?.take);
  /** Samples are the first data refused on a nearly full disk: agents keep them and send them again. */
  const recordSamples: typeof metrics.record = async (nodeId, given) => {
    if (disk.low && db.kind === 'sqlite')
      throw new MusterError('storage_full', 'The disk of the orchestrator is nearly full; none of these were kept');
    await metrics.record(nodeId, given);
  };
  const conductor = createRunConductor(context, documents, { maxConcurrent: config.runs.max_concurrent });
  gateway = createGateway({
    identity,
    links: createAgentLinks(context, refusals, pending, recordSamples, liveOutput, {
      get dailyBytes() {
        return current.agents.daily_bytes;
      },
      get room() {
        // PostgreSQL stores rows elsewhere and reports a full disk itself.
        return db.kind === 'sqlite' ? reportRoom(disk.space) : 'ample';
      },
    }),
    bus,
    clock,
    log: log.child({ part: 'gateway' }),
    random: Math.random,
    metricsInterval: config.metrics.poll_interval,
  });

  let agentPort = config.agent_port;
  const installFiles = await readInstallFiles(config.packages_dir, process.execPath);
  const consoleFiles = await readConsoleFiles([process.execPath, ...process.argv.slice(1, 2)]).catch(
    (error: unknown) => {
      log.warn({ err: error }, 'failed to read the console files; the console is not served');
      return null;
    },
  );
  const advertised = () => ({
    agents: `${bracketed(config.advertised_host ?? hostname())}:${agentPort}`,
    publicKey,
    install: installSource({
      hasPackages: installFiles.size > 0,
      apiHost: config.api_host,
      tls: tls !== null,
      publicUrl: config.public_url,
      ownUrl: apiAddress(),
      keyDigest: tls === null ? null : keyDigestOf(tls.cert),
    }),
    note: noteOnAgents(config.agent_host, config.advertised_host, hostname()),
  });
  const publicUrl = config.public_url?.replace(/\/+$/, '') ?? null;
  const apiAddress = () =>
    publicUrl ?? `${tls ? 'https' : 'http'}://${bracketed(config.advertised_host ?? hostname())}:${apiPort}`;
  const identityKey = createPrivateKey(identity.privateKeyPem);
  const discover = createDiscovery(context, {
    announcer: createAnnouncer(),
    port: config.discovery.port,
    agents: () => ({ host: config.advertised_host ?? oneAddress(config.agent_host), port: agentPort }),
    publicKey: identity.publicKey,
    sign: (encoded) => sign(null, announcementSigned(encoded), identityKey),
  });
  let upkeep: Upkeep | null = null;
  const isHealthy = async () => {
    try {
      await db.get(anyOperator, {});
      return upkeep?.healthy ?? true;
    } catch {
      return false;
    }
  };
  const channelRule = {
    get denyPrivate() {
      return current.notifications.deny_private;
    },
  };
  const deliver = createDeliver({
    version,
    now: () => clock.now(),
    get denyPrivate() {
      return channelRule.denyPrivate;
    },
  });
  const metricsTelemetry = createTelemetry(
    {
      census: createCensus(context),
      ready: isHealthy,
      levels: () => ({
        connectedAgents: gateway?.presence.count ?? 0,
        dispatchQueue: gateway?.backlog.agents ?? 0,
        dispatchBytes: gateway?.backlog.bytes ?? 0,
        database: db.stats(),
        recordedBytes: transcripts.recorded,
        samples: { ...samples.stats(), passedOver: metrics.passedOver },
        disk: disk.space,
        connections: { api: app.connections.stats, agentsDropped: gateway?.dropped ?? 0 },
        remoteWrite: remoteWrite?.stats() ?? null,
      }),
    },
    { processMetrics: true },
  );
  telemetry = metricsTelemetry;
  held.add(
    bus.subscribe((hint) => {
      if (hint.type === 'operation_ended') metricsTelemetry.operationEnded(hint.status);
    }),
  );
  const app = createApp({
    handlers: {
      ...signInHandlers(context, signIn, (reached) => publicUrl ?? reached ?? apiAddress()),
      ...agentHandlers(context, advertised),
      ...discoveryHandlers(discover),
      ...moduleHandlers(context, documents),
      ...fleetHandlers(context),
      ...operationHandlers(context, documents, waiting, conductor, liveOutput),
      ...windowHandlers(context),
      ...terminalHandlers(terminals),
      ...metricsHandlers(metrics),
      ...settingsHandlers(() => describeSettings({ data_dir: dataDir, ...current }, sources)),
      ...auditHandlers(context),
      ...eventHandlers(context, live),
      ...notificationHandlers(context, deliver, channelRule),
      ...statusHandlers({
        publicKey,
        version,
        databaseKind: db.kind,
        writable: isHealthy,
        secretsReadable: () => upkeep?.secretsReadable ?? true,
        samples: () => samples.stats(),
        disk: () => disk.space,
      }),
      ...secretHandlers(context),
    },
    sessions: signIn,
    terminals,
    clock,
    refused: recordRefused(refusals),
    log: log.child({ part: 'api' }),
    version,
    configSchemas: { [configSchemaId]: configJsonSchema, [agentConfigSchemaId]: agentConfigJsonSchema },
    ready: isHealthy,
    requireRoom: (route) => {
      if (disk.low) refuseGrowth(route, db.kind === 'postgres');
    },
    telemetry: {
      ...metricsTelemetry,
      agents: (filter) => metrics.standings(filter, stalePolls * config.metrics.poll_interval),
      token: () => current.metrics_token,
    },
    trustedProxies: config.trusted_proxies,
    publicUrl: config.public_url,
    limits: { rates: ratesOf(config) },
    install: installFiles,
    ...(config.console ? { console: consoleFiles } : {}),
    trustProxyTls: config.trust_proxy_tls,
    ...(tls ? { tls } : {}),
  });
  held.add(
    bus.subscribe((hint) => {
      if (hint.type === 'operator_removed') app.cutOff(hint.operator_id);
      else if (hint.type === 'session_ended') app.sessionEnded(hint.token_hash, hint.renewed_as);
    }),
  );

  const agents = gateway;
  let auditKeeping: AuditKeeping | null = null;
  let outbox: Outbox | null = null;
  let driftSweep: DriftSweep | null = null;
  held.add(async () => {
    // First accept nothing new, and answer requests that wait for agents with the current state.
    app.drain();
    const cutOff = clock.after(cutOffMs, () => app.server.closeAllConnections());
    await upkeep?.stop();
    await driftSweep?.stop();
    await outbox?.stop();
    // Before the links close, so that agents end their shells and clients receive the reason.
    await terminals.stop();
    await agents.drain();
    waiting.close();
    await conductor.stop();
    await app.close();
    cutOff();
    await agents.close();
    await remoteWrite?.stop();
    await pending.close().catch((error: unknown) => log.warn({ err: error }, 'failed to record new agents'));
    await refusals
      .close()
      .catch((error: unknown) => log.warn({ err: error }, 'failed to record refusals in the audit log'));
    // The last writer to stop, so that the events of the others are placed.
    await auditKeeping?.stop();
  });
  await app.listen({ host: config.api_host, port: config.api_port });
  apiPort = (app.server.address() as AddressInfo).port;
  agentPort = await listenForAgents(agents, config);
  upkeep = startUpkeep(context, clock, {
    lostAfterSecs: config.agents.lost_after_secs,
    retention: {
      get driftDays() {
        return current.drift.retention_days;
      },
      get operationDays() {
        return current.operations.retention_days;
      },
    },
    pruneSamples: metrics.prune,
    pruneTerminals: () => pruneTerminals(context, transcripts, current.terminals.retention_days),
    runs: conductor,
    refusals,
    pending,
    secretsExpiryNoticeDays: config.secrets_expiry_notice_days,
  });
  /** Consumers of audit events. They run in the transaction that places the events. */
  const consumers: EventConsumer[] = [notificationsOf(context)];
  const holder = `${hostname()}:${dataDir}`;
  auditKeeping = startAuditKeeping(context, clock, {
    sequencer: createSequencer(context, { consumers }),
    get retentionDays() {
      return current.audit.retention_days;
    },
    holder,
  });
  await upkeep.round();
  outbox = startOutbox(context, clock, {
    deliver,
    random: Math.random,
    get giveUpAfter() {
      return current.notifications.give_up_after;
    },
    get retentionDays() {
      return current.notifications.retention_days;
    },
    lease: createLease(context, 'outbox', holder),
  });
  if (config.drift.enabled)
    driftSweep = startDriftSweep(context, clock, {
      get interval() {
        return current.drift.interval;
      },
      get maxConcurrent() {
        return current.drift.max_concurrent;
      },
      get skipRecentlyApplied() {
        return current.drift.skip_recently_applied;
      },
      random: Math.random,
      lease: createLease(context, 'drift-sweep', holder),
      // Drift records must not use the space that is reserved for results of requested operations.
      paused: () => disk.low && db.kind === 'sqlite',
    });

  const host = config.api_host === '0.0.0.0' || config.api_host === '::' ? '127.0.0.1' : config.api_host;
  return {
    apiUrl: `${tls ? 'https' : 'http'}://${bracketed(host)}:${apiPort}`,
    apiPort,
    agentPort,
    publicKey,
    fingerprint: certificate?.fingerprint ?? null,
    bootstrapped,
    operators: (await db.get(anyOperator, {})) !== undefined,
    reload: async (next, from) => {
      // Read the files before any change, so that an unreadable file does not leave a partial reload.
      const secured = certificate ?? (next.tls_enabled ? await tlsOf(next, null) : null);
      if (tls && certificate === null && secured && 'cert' in secured) {
        (app.server as unknown as TlsServer).setSecureContext({ ...secured, minVersion: 'TLSv1.2' });
        servedCertificate = secured.cert;
      }
      const changes = changesOf(config, current, next, { ownCertificate: certificate !== null });
      sources = sourcesAfter(sources, from);
      current = reloaded(current, next);
      app.setRates(ratesOf(current));
      if (changes.now.includes('sign_in.require_bound') && signInRules.requireBound) {
        const ended = await signIn.endUnbound();
        log.info({ sessions: ended }, 'ended sign-in sessions that are not bound to a server');
      }
      return changes;
    },
    stop: () => held.dispose(),
  };
}

/** Completes an interrupted `muster restore`. @throws Error if its files are incomplete, or it is still running */
async function finishCutOff(dataDir: string): Promise<boolean> {
  if (!(await stat(join(dataDir, '.restoring')).catch(() => null))) return false;
  const unlock = await lockDirectory(dataDir, 'orchestrator');
  try {
    return await finishRestore(dataDir);
  } finally {
    await unlock();
  }
}

const placeOfDatabase = (config: Config, dataDir: string): DatabasePlace => ({
  file: join(dataDir, 'muster.db'),
  postgres:
    config.database_url === null
      ? null
      : {
          url: config.database_url.reveal(),
          poolSize: config.database_pool_size,
          statementTimeout: config.database_statement_timeout,
        },
});

/** Starts remote write. @returns null if it is not configured */
function remoteWriteOf(context: Context, clock: Clock, config: Config): RemoteWrite | null {
  const { url, bearer_token_file, username, password_file, deny_private, queue } = config.metrics.remote_write;
  if (url === null) return null;
  const credentials =
    bearer_token_file !== null
      ? { bearerTokenFile: bearer_token_file }
      : username !== null
        ? { username, passwordFile: password_file }
        : null;
  const write = createRemoteWrite({ url, credentials, version, denyPrivate: deny_private });
  return startRemoteWrite(context, clock, { write, random: Math.random, capacity: queue });
}

const ratesOf = ({ rates }: Config): Rates => ({
  signIn: { perMinute: rates.sign_in_per_minute, burst: rates.sign_in_burst },
  sessionPerSecond: rates.session_per_second,
});

async function tlsOf(config: Config, certificate: { certificate: string; key: string } | null) {
  if (!config.tls_enabled) return null;
  if (certificate) return { cert: certificate.certificate, key: certificate.key };
  return {
    cert: await readFile(config.tls_cert as string, 'utf8'),
    key: await readFile(config.tls_key as string, 'utf8'),
  };
}

/** Base64 of the SHA-256 of a PEM certificate's public key, as for curl's `--pinnedpubkey`. */
const keyDigestOf = (pem: string): string =>
  hash('sha256', new X509Certificate(pem).publicKey.export({ format: 'der', type: 'spki' }), 'base64');

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

/** Null for "all addresses", in any spelling. */
const oneAddress = (host: string | null): string | null => (host === null || /^[0:.]+$/.test(host) ? null : host);

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Random numbers in [0, 1) from a pool of secure bytes. A ULID needs 16, and one call per byte would be slow. */
function bufferedRandom(): () => number {
  const pool = Buffer.alloc(4096);
  let next = pool.length;
  return () => {
    if (next === pool.length) {
      randomFillSync(pool);
      next = 0;
    }
    return pool.readUInt8(next++) / 256;
  };
}
