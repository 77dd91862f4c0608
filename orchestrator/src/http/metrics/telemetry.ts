import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Census } from '../../domain/fleet/fleet-counts.ts';
import { censusGauges, type Levels, levelGauges } from './level-gauges.ts';

/**
 * Prometheus metrics of this process. Every label has a fixed set of values without text from clients, because each new
 * value adds a series.
 */
export interface Telemetry {
  /** Counts a request that received a response. @param route the route's ID; null for a path outside the route table */
  answered(route: string | null, status: number, seconds: number): void;
  /** Counts a database transaction. @param units number of writes in the transaction */
  committed(units: number, seconds: number): void;
  operationEnded(status: string): void;
  /** @returns all metrics as text, with their content type */
  scrape(sources: TelemetrySources): Promise<{ type: string; body: string }>;
}

/** Reads current values on each scrape. */
export interface TelemetrySources {
  /** Returns null if the database does not respond. */
  census(): Promise<Census | null>;
  /** Reports whether this process can serve requests. */
  ready(): boolean | Promise<boolean>;
  levels(): Levels;
}

/**
 * @param processMetrics whether to add metrics for memory, CPU, garbage collection, and the event loop; allowed once
 * per process
 */
export function createTelemetry({ processMetrics = false } = {}): Telemetry {
  const register = new Registry();
  const registers: [Registry] = [register];
  const setCensus = censusGauges(registers);
  const ready = new Gauge({ name: 'muster_ready', help: '1 when this process can serve requests.', registers });
  const setLevels = levelGauges(registers);
  const ended = new Counter({
    name: 'muster_operations_ended_total',
    help: 'Operations that have ended.',
    labelNames: ['status'],
    registers,
  });
  const commitUnits = new Histogram({
    name: 'muster_commit_units',
    help: 'Writes that shared one transaction.',
    buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000],
    registers,
  });
  const commitSeconds = new Histogram({
    name: 'muster_commit_seconds',
    help: 'Duration of a transaction, including its commit.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  });
  if (processMetrics) {
    collectDefaultMetrics({ register });
    // Removes gauges with the suffix `_total`, which is reserved for counters. prom-client exports the same numbers by
    // type.
    for (const kind of ['handles', 'requests', 'resources']) register.removeSingleMetric(`nodejs_active_${kind}_total`);
  }

  return {
    answered: requestHistogram(registers),

    committed(units, seconds) {
      commitUnits.observe(units);
      commitSeconds.observe(seconds);
    },

    operationEnded: (status) => ended.inc({ status }),

    async scrape(sources) {
      const [census, isReady] = await Promise.all([sources.census(), sources.ready()]);
      if (census) setCensus(census);
      ready.set(isReady ? 1 : 0);
      setLevels(sources.levels());
      return { type: register.contentType, body: await register.metrics() };
    },
  };
}

const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** @returns a function that counts one request */
function requestHistogram(registers: [Registry]): Telemetry['answered'] {
  const requests = new Histogram({
    name: 'muster_http_request_seconds',
    help: 'Duration of requests by route and status class, including waits for agents.',
    labelNames: ['route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers,
  });
  /** Caches series by labels, because a lookup in prom-client costs more than the increment. */
  const series = new Map<string, ReturnType<typeof requests.labels>>();
  return (route, status, seconds) => {
    const routeName = route ?? 'other';
    const className = classes[Math.floor(status / 100) - 1] ?? '5xx';
    const key = `${routeName} ${className}`;
    let found = series.get(key);
    if (!found) {
      found = requests.labels(routeName, className);
      series.set(key, found);
    }
    found.observe(seconds);
  };
}
