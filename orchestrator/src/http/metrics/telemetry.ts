import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Census } from '../../domain/fleet/fleet-counts.ts';

/** What the process tells Prometheus of itself. Labels take a fixed set of values: what clients send is never one. */
export interface Telemetry {
  /** A request was answered. @param route the route's id; null for what is none of the table's */
  answered(route: string | null, status: number, seconds: number): void;
  /** A transaction of the database ended. @param units how many writes shared it */
  committed(units: number, seconds: number): void;
  operationEnded(status: string): void;
  /** The whole as text, and its content type. */
  scrape(): Promise<{ type: string; body: string }>;
}

/** What is read at each scrape. */
export interface TelemetrySources {
  census(): Promise<Census | null>;
  /** Whether requests should be sent here. */
  ready(): boolean | Promise<boolean>;
  levels(): Levels;
}

export interface Levels {
  readonly connectedAgents: number;
  /** Agents whose rows wait to be read and sent. */
  readonly dispatchQueue: number;
  /** Bytes of operations that the network has not taken. */
  readonly dispatchBytes: number;
  readonly database: {
    readonly queued: number;
    readonly queuedBytes: number;
    readonly unitsCommitted: number;
    readonly unitsFailed: number;
    readonly retries: number;
  };
  /** Of the data directory's file system; null: not known. */
  readonly disk: {
    readonly size: number;
    readonly free: number;
    readonly reserve: number;
    readonly low: boolean;
  } | null;
  /** Bytes of what terminals showed that were recorded. */
  readonly recordedBytes: number;
  readonly samples: {
    readonly queued: number;
    readonly stored: number;
    readonly failed: number;
    readonly passedOver: number;
  };
  /** Connections to the API's port, and those of each port that were dropped since the start. */
  readonly connections: {
    readonly api: { readonly open: number; readonly dropped: { readonly share: number; readonly full: number } };
    readonly agentsDropped: number;
  };
  /** Samples on their way to elsewhere; null when none are. */
  readonly remoteWrite: RemoteWriteLevels | null;
}

export interface RemoteWriteLevels {
  readonly queued: number;
  readonly sent: number;
  readonly overflowed: number;
  readonly refused: number;
  readonly passedOver: number;
  readonly retries: number;
}

const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** @param processMetrics also memory, CPU, garbage collection and the event loop: once in a process */
export function createTelemetry(sources: TelemetrySources, { processMetrics = false } = {}): Telemetry {
  const register = new Registry();
  const registers = [register];
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge<L>({ name, help, labelNames: [...labelNames], registers });
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name, help, labelNames: [...labelNames], registers });

  const agents = gauge('muster_agents', 'Agents by their approval.', ['status']);
  const operations = gauge('muster_operations', 'Operations that have not ended.', ['status']);
  const terminals = gauge('muster_terminals', 'Terminal sessions that are open.');
  const deliveries = gauge('muster_outbox_deliveries', 'Messages to channels that wait.');
  const unplaced = gauge('muster_audit_unplaced_events', 'Events that have no place in the audit chain yet.');
  const ready = gauge('muster_ready', '1 when requests should be sent here.');
  const connected = gauge('muster_agents_connected', 'Agents that are connected to this process.');
  const dispatchQueue = gauge('muster_dispatch_queue', 'Agents whose work waits to be read and sent.');
  const dispatchBytes = gauge('muster_dispatch_bytes', 'Bytes of operations that the network has not taken.');
  const writeQueue = gauge('muster_write_queue_units', 'Writes handed to the database and not answered.');
  const writeBytes = gauge('muster_write_queue_bytes', 'What those take in memory.');
  const apiConnections = gauge('muster_api_connections', 'Connections to the port of the API.');
  const connectionsDropped = counter(
    'muster_connections_dropped_total',
    'Connections dropped by port; share: of an address with many, full: the port had all it takes.',
    ['port', 'reason'],
  );
  const sampleQueue = gauge('muster_samples_queue', 'Samples handed in and not stored.');
  const diskSize = gauge('muster_disk_size_bytes', 'Size of the file system of the data directory.');
  const diskFree = gauge('muster_disk_free_bytes', 'What is free there.');
  const diskReserve = gauge('muster_disk_reserve_bytes', 'Below this what would grow is refused; 0: never.');
  const diskLow = gauge('muster_disk_low', '1 while it is refused.');
  const ended = counter('muster_operations_ended_total', 'Operations that have ended.', ['status']);
  // Counted elsewhere: read at each scrape.
  const totals = {
    unitsCommitted: counter('muster_writes_total', 'Writes that were committed.'),
    unitsFailed: counter('muster_writes_failed_total', 'Writes that were refused or failed.'),
    retries: counter('muster_write_retries_total', 'Transactions that were run again.'),
  };
  const recorded = counter(
    'muster_terminal_recorded_bytes_total',
    'Bytes of what terminals showed that were recorded.',
  );
  const samplesStored = counter('muster_samples_total', 'Samples that were stored.');
  const samplesFailed = counter('muster_samples_failed_total', 'Samples that could not be stored.');
  const samplesPassedOver = counter(
    'muster_samples_passed_over_total',
    'Samples that were not kept for their times: too old, or far ahead.',
  );
  const remoteQueue = gauge('muster_remote_write_queue', 'Samples that wait to be written to metrics.remote_write.');
  const remoteSent = counter('muster_remote_write_samples_total', 'Samples that were written to it.');
  const remoteDropped = counter('muster_remote_write_dropped_total', 'Samples that were not, and why.', ['reason']);
  const remoteRetries = counter('muster_remote_write_retries_total', 'Requests to it that were to be made again.');
  const commitUnits = new Histogram({
    name: 'muster_commit_units',
    help: 'Writes that shared one transaction.',
    buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000],
    registers,
  });
  const commitSeconds = new Histogram({
    name: 'muster_commit_seconds',
    help: 'How long a transaction took, to its commit.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  });
  const requests = new Histogram({
    name: 'muster_http_request_seconds',
    help: 'Requests by route and class of status; those that wait for agents take as long as these.',
    labelNames: ['route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers,
  });
  if (processMetrics) {
    collectDefaultMetrics({ register });
    // Gauges that end in what only counters may; how many there are of each kind is told all the same.
    for (const kind of ['handles', 'requests', 'resources']) register.removeSingleMetric(`nodejs_active_${kind}_total`);
  }

  /** Finding a child by its labels costs more than counting: each is found once. */
  const children = new Map<string, ReturnType<typeof requests.labels>>();

  return {
    answered(route, status, seconds) {
      const of = route ?? 'other';
      const name = classes[Math.floor(status / 100) - 1] ?? '5xx';
      const key = `${of} ${name}`;
      let child = children.get(key);
      if (!child) {
        child = requests.labels(of, name);
        children.set(key, child);
      }
      child.observe(seconds);
    },

    committed(units, seconds) {
      commitUnits.observe(units);
      commitSeconds.observe(seconds);
    },

    operationEnded: (status) => ended.inc({ status }),

    async scrape() {
      const [census, isReady] = await Promise.all([sources.census(), sources.ready()]);
      if (census) {
        for (const [status, count] of Object.entries(census.agents)) agents.set({ status }, count);
        for (const [status, count] of Object.entries(census.operations)) operations.set({ status }, count);
        terminals.set(census.terminals);
        deliveries.set(census.deliveries);
        unplaced.set(census.unplacedEvents);
      }
      ready.set(isReady ? 1 : 0);
      const { database, samples, remoteWrite, disk, connections, ...levels } = sources.levels();
      if (disk) {
        diskSize.set(disk.size);
        diskFree.set(disk.free);
        diskReserve.set(disk.reserve);
        diskLow.set(disk.low ? 1 : 0);
      }
      apiConnections.set(connections.api.open);
      connectionsDropped.reset();
      for (const reason of ['share', 'full'] as const)
        connectionsDropped.inc({ port: 'api', reason }, connections.api.dropped[reason]);
      connectionsDropped.inc({ port: 'agents', reason: 'full' }, connections.agentsDropped);
      connected.set(levels.connectedAgents);
      dispatchQueue.set(levels.dispatchQueue);
      dispatchBytes.set(levels.dispatchBytes);
      writeQueue.set(database.queued);
      writeBytes.set(database.queuedBytes);
      sampleQueue.set(samples.queued);
      for (const name of ['unitsCommitted', 'unitsFailed', 'retries'] as const) setTotal(totals[name], database[name]);
      setTotal(recorded, levels.recordedBytes);
      setTotal(samplesStored, samples.stored);
      setTotal(samplesFailed, samples.failed);
      setTotal(samplesPassedOver, samples.passedOver);
      if (remoteWrite) {
        remoteQueue.set(remoteWrite.queued);
        setTotal(remoteSent, remoteWrite.sent);
        setTotal(remoteRetries, remoteWrite.retries);
        remoteDropped.reset();
        remoteDropped.inc({ reason: 'overflow' }, remoteWrite.overflowed);
        remoteDropped.inc({ reason: 'refused' }, remoteWrite.refused);
        remoteDropped.inc({ reason: 'out_of_order' }, remoteWrite.passedOver);
      }
      return { type: register.contentType, body: await register.metrics() };
    },
  };
}

function setTotal(counter: Counter, total: number): void {
  counter.reset();
  counter.inc(total);
}
