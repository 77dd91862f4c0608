import type { Census } from '../../domain/fleet/fleet-counts.ts';
import { gauge, type Registers, total } from './registered.ts';
import { type ReplicaLevels, replicaGauges } from './replica-gauges.ts';

/** Metrics that are read on each scrape: levels, and totals that other modules maintain. */

export interface Levels {
  readonly connectedAgents: number;
  /** Agents with queued work that has not been read from the database and sent yet. */
  readonly dispatchQueue: number;
  /** Bytes of operations that have not been written to the network yet. */
  readonly dispatchBytes: number;
  readonly database: {
    readonly queued: number;
    readonly queuedBytes: number;
    readonly unitsCommitted: number;
    readonly unitsFailed: number;
    readonly retries: number;
  };
  /** The data directory's file system; null if it is unknown. */
  readonly disk: {
    readonly size: number;
    readonly free: number;
    readonly reserve: number;
    readonly low: boolean;
  } | null;
  /** Bytes of terminal output recorded in transcripts. */
  readonly recordedBytes: number;
  readonly samples: {
    readonly queued: number;
    readonly stored: number;
    readonly failed: number;
    readonly passedOver: number;
  };
  /** Open connections to the API port, and dropped connections since startup by port. */
  readonly connections: {
    readonly api: { readonly open: number; readonly dropped: { readonly share: number; readonly full: number } };
    readonly agentsDropped: number;
  };
  /** Remote-write counters; null if remote write is not configured. */
  readonly remoteWrite: RemoteWriteLevels | null;
  /** The connection to NATS; null if NATS is not configured. */
  readonly bus: BusLevels | null;
  /** This replica and the others; null without `replica.name`. */
  readonly replica: ReplicaLevels | null;
}

export interface BusLevels {
  readonly isConnected: boolean;
  readonly sent: number;
  readonly received: number;
  readonly dropped: number;
  readonly gaps: number;
  readonly ignored: Readonly<Record<string, number>>;
}

export interface RemoteWriteLevels {
  readonly queued: number;
  readonly sent: number;
  readonly overflowed: number;
  readonly refused: number;
  readonly passedOver: number;
  readonly retries: number;
}

/** @returns a function that sets the gauges for the fleet's records */
export function censusGauges(registers: Registers): (census: Census) => void {
  const agents = gauge(registers, 'muster_agents', 'Agents by approval status.', ['status']);
  const operations = gauge(registers, 'muster_operations', 'Operations that have not ended.', ['status']);
  const terminals = gauge(registers, 'muster_terminals', 'Open terminal sessions.');
  const deliveries = gauge(
    registers,
    'muster_outbox_deliveries',
    'Messages to notification channels that are not delivered yet.',
  );
  const unplaced = gauge(registers, 'muster_audit_unplaced_events', 'Events that are not in the audit chain yet.');
  return (census) => {
    for (const [status, count] of Object.entries(census.agents)) agents.set({ status }, count);
    for (const [status, count] of Object.entries(census.operations)) operations.set({ status }, count);
    terminals.set(census.terminals);
    deliveries.set(census.deliveries);
    unplaced.set(census.unplacedEvents);
  };
}

/** @returns a function that sets the gauges for this process */
export function levelGauges(registers: Registers): (levels: Levels) => void {
  const setLinks = linkGauges(registers);
  const setDatabase = databaseGauges(registers);
  const setConnections = connectionGauges(registers);
  const setSamples = sampleGauges(registers);
  const setDisk = diskGauges(registers);
  const recorded = total(
    registers,
    'muster_terminal_recorded_bytes_total',
    'Bytes of terminal output that were recorded.',
  );
  const setRemoteWrite = remoteWriteGauges(registers);
  /** Created only with NATS, so that no alert about a missing connection fires without it. */
  let setBus: ReturnType<typeof busGauges> | null = null;
  let setReplica: ReturnType<typeof replicaGauges> | null = null;
  return (levels) => {
    setLinks(levels);
    setDatabase(levels.database);
    setConnections(levels.connections);
    setSamples(levels.samples);
    if (levels.disk) setDisk(levels.disk);
    recorded.set(levels.recordedBytes);
    if (levels.remoteWrite) setRemoteWrite(levels.remoteWrite);
    if (levels.bus) {
      setBus ??= busGauges(registers);
      setBus(levels.bus);
    }
    if (levels.replica) {
      setReplica ??= replicaGauges(registers);
      setReplica(levels.replica);
    }
  };
}

function linkGauges(registers: Registers) {
  const connected = gauge(registers, 'muster_agents_connected', 'Agents that are connected to this process.');
  const queue = gauge(registers, 'muster_dispatch_queue', 'Agents with queued work that is not read and sent yet.');
  const bytes = gauge(registers, 'muster_dispatch_bytes', 'Bytes of operations not yet written to the network.');
  return ({ connectedAgents, dispatchQueue, dispatchBytes }: Levels) => {
    connected.set(connectedAgents);
    queue.set(dispatchQueue);
    bytes.set(dispatchBytes);
  };
}

function databaseGauges(registers: Registers) {
  const queued = gauge(registers, 'muster_write_queue_units', 'Writes waiting for the database.');
  const queuedBytes = gauge(registers, 'muster_write_queue_bytes', 'Memory used by writes waiting for the database.');
  const committed = total(registers, 'muster_writes_total', 'Writes that were committed.');
  const failed = total(registers, 'muster_writes_failed_total', 'Writes that were refused or failed.');
  const retries = total(registers, 'muster_write_retries_total', 'Transactions that were retried.');
  return (database: Levels['database']) => {
    queued.set(database.queued);
    queuedBytes.set(database.queuedBytes);
    committed.set(database.unitsCommitted);
    failed.set(database.unitsFailed);
    retries.set(database.retries);
  };
}

function connectionGauges(registers: Registers) {
  const open = gauge(registers, 'muster_api_connections', 'Open connections to the API port.');
  const dropped = total(
    registers,
    'muster_connections_dropped_total',
    'Connections dropped, by port and reason; share: over the limit of one network, full: over the limit of the port.',
    ['port', 'reason'],
  );
  return ({ api, agentsDropped }: Levels['connections']) => {
    open.set(api.open);
    dropped.setEach([
      [{ port: 'api', reason: 'share' }, api.dropped.share],
      [{ port: 'api', reason: 'full' }, api.dropped.full],
      [{ port: 'agents', reason: 'full' }, agentsDropped],
    ]);
  };
}

function sampleGauges(registers: Registers) {
  const queue = gauge(registers, 'muster_samples_queue', 'Samples waiting to be stored.');
  const stored = total(registers, 'muster_samples_total', 'Samples that were stored.');
  const failed = total(registers, 'muster_samples_failed_total', 'Samples that could not be stored.');
  const passedOver = total(
    registers,
    'muster_samples_passed_over_total',
    'Samples discarded because their timestamps were too old or too far in the future.',
  );
  return (samples: Levels['samples']) => {
    queue.set(samples.queued);
    stored.set(samples.stored);
    failed.set(samples.failed);
    passedOver.set(samples.passedOver);
  };
}

function diskGauges(registers: Registers) {
  const size = gauge(registers, 'muster_disk_size_bytes', 'Size of the file system of the data directory.');
  const free = gauge(registers, 'muster_disk_free_bytes', 'Free bytes of the file system of the data directory.');
  const reserve = gauge(
    registers,
    'muster_disk_reserve_bytes',
    'Free bytes below which requests that add data are refused; 0 if they are never refused.',
  );
  const low = gauge(registers, 'muster_disk_low', '1 while requests that add data are refused.');
  return (disk: NonNullable<Levels['disk']>) => {
    size.set(disk.size);
    free.set(disk.free);
    reserve.set(disk.reserve);
    low.set(disk.low ? 1 : 0);
  };
}

function remoteWriteGauges(registers: Registers) {
  const queue = gauge(registers, 'muster_remote_write_queue', 'Samples waiting to be sent with remote write.');
  const sent = total(registers, 'muster_remote_write_samples_total', 'Samples sent with remote write.');
  const dropped = total(
    registers,
    'muster_remote_write_dropped_total',
    'Samples dropped instead of sent with remote write, by reason.',
    ['reason'],
  );
  const retries = total(registers, 'muster_remote_write_retries_total', 'Remote write requests that must be retried.');
  return (levels: RemoteWriteLevels) => {
    queue.set(levels.queued);
    sent.set(levels.sent);
    retries.set(levels.retries);
    dropped.setEach([
      [{ reason: 'overflow' }, levels.overflowed],
      [{ reason: 'refused' }, levels.refused],
      [{ reason: 'out_of_order' }, levels.passedOver],
    ]);
  };
}

function busGauges(registers: Registers) {
  const connected = gauge(registers, 'muster_bus_connected', '1 while this replica is connected to NATS.');
  const messages = total(registers, 'muster_bus_messages_total', 'Messages to and from other replicas.', ['direction']);
  const dropped = total(registers, 'muster_bus_dropped_total', 'Messages that could not be sent to NATS.');
  const gaps = total(
    registers,
    'muster_bus_gaps_total',
    'Number of times that messages from another replica were missing.',
  );
  const ignored = total(registers, 'muster_bus_ignored_total', 'Received messages that were ignored, by reason.', [
    'reason',
  ]);
  return (levels: BusLevels) => {
    connected.set(levels.isConnected ? 1 : 0);
    messages.setEach([
      [{ direction: 'sent' }, levels.sent],
      [{ direction: 'received' }, levels.received],
    ]);
    dropped.set(levels.dropped);
    gaps.set(levels.gaps);
    ignored.setEach(Object.entries(levels.ignored).map(([reason, count]) => [{ reason }, count] as const));
  };
}
