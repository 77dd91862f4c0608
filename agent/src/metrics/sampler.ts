import type { Sample } from '@muster/protocol';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { MachineSource } from '../host/machine-source.ts';
import { DiskReader } from './disks.ts';
import { countedInterfaces, parseTraffic, relationsOf, sumTraffic } from './network.ts';
import {
  type CpuTimes,
  countProcesses,
  cpuUsage,
  type Memory,
  parseCpuTimes,
  parseLoad,
  parseMemory,
  parseUptime,
} from './readings.ts';
import type { SampleBuffer } from './sample-buffer.ts';

export interface MetricsSettings {
  enabled: boolean;
  /** Seconds. */
  collection_interval: number;
}

/** Defaults if there is no configuration file. */
export const defaultMetrics: MetricsSettings = { enabled: true, collection_interval: 30 };

/**
 * Milliseconds until the first sample. Short, because users may be waiting, but long enough to measure the CPU usage.
 */
const firstMs = 5_000;
/**
 * If the clock was set back by at most this many seconds, the sampler waits until the clock has caught up, because this
 * period already has samples. After startup, the sampler waits for this time regardless of the difference, because some
 * machines set their clock only after booting.
 */
const maxClockWaitSecs = 300;

export interface SamplerOptions {
  source: MachineSource;
  buffer: SampleBuffer;
  clock: Clock;
  log: Pick<Log, 'debug' | 'warn' | 'error'>;
  settings: () => MetricsSettings;
  /** Called after a sample was added or all samples were dropped. */
  changed: () => void;
}

/**
 * Measures the machine at an interval, with or without a link. Uses the monotonic clock, and skips samples that became
 * due while the process or the machine was suspended.
 */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly #disks: DiskReader;
  /** Null while disabled. */
  #intervalMs: number | null = null;
  /** Monotonic milliseconds at which the last sample was due. */
  #lastDue = 0;
  #cpu: CpuTimes | null = null;
  /** Unix seconds of the newest sample. */
  #newest = Number.NEGATIVE_INFINITY;
  /** Monotonic milliseconds until which the sampler waits for the clock, no matter how far it is behind. */
  #waitForClockUntil = Number.NEGATIVE_INFINITY;
  #isTaking = false;
  #hasWarnedFull = false;
  #interfaces: { of: string; counted: string[] } = { of: '', counted: [] };
  #cancelTimer = () => {};

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#disks = new DiskReader(options.source, options.clock);
    const { buffer, clock } = options;
    // The buffer contains samples from an earlier process.
    if (buffer.first === buffer.end) return;
    this.#newest = buffer.timeOf(buffer.end - 1);
    this.#waitForClockUntil = clock.monotonic() + maxClockWaitSecs * 1000;
  }

  /** Starts, stops, or changes the interval, according to the settings. */
  update(): void {
    const { clock, settings } = this.#options;
    const { enabled, collection_interval } = settings();
    const intervalMs = enabled ? collection_interval * 1000 : null;
    // Disabling metrics also discards unsent samples.
    if (intervalMs === null) this.#dropAll();
    if (intervalMs === this.#intervalMs) return;
    const isNew = this.#intervalMs === null;
    this.#intervalMs = intervalMs;
    this.#cancelTimer();
    if (intervalMs === null) return;
    if (isNew) {
      this.#cpu = this.#readCpu();
      this.#lastDue = clock.monotonic() + Math.min(intervalMs, firstMs) - intervalMs;
    }
    this.#wait();
  }

  end(): void {
    this.#intervalMs = null;
    this.#cancelTimer();
  }

  #dropAll(): void {
    const { buffer, changed } = this.#options;
    buffer.drop(buffer.end);
    changed();
  }

  #wait(): void {
    const { clock } = this.#options;
    const due = this.#lastDue + this.#intervalMs!;
    this.#cancelTimer = clock.after(Math.max(0, due - clock.monotonic()), () => {
      // Skips the missed samples after a delay of more than one interval.
      const now = clock.monotonic();
      this.#lastDue = now - due < this.#intervalMs! ? due : now;
      this.#tick();
      this.#wait();
    });
  }

  #tick(): void {
    if (this.#isTaking) return;
    this.#isTaking = true;
    this.#take()
      .catch((error: unknown) => this.#options.log.error({ error }, 'bug: failed to collect a metrics sample'))
      .finally(() => {
        this.#isTaking = false;
      });
  }

  async #take(): Promise<void> {
    const { clock, buffer, log } = this.#options;
    const collected_at = await this.#time();
    if (collected_at === null) return;
    const sample = this.#measure(collected_at);
    const disks = await this.#disks.read();
    // Metrics were disabled during the measurement.
    if (this.#intervalMs === null) return;
    if (buffer.first === buffer.end) this.#hasWarnedFull = false;
    this.#newest = collected_at;
    const isFull = buffer.push({ ...sample, disk_total: disks?.total ?? null, disk_used: disks?.used ?? null });
    log.debug({ collected_at }, 'collected a metrics sample');
    this.#options.changed();
    if (!isFull || this.#hasWarnedFull) return;
    this.#hasWarnedFull = true;
    const hours = Math.round((clock.now() / 1000 - buffer.timeOf(buffer.first)) / 360) / 10;
    log.warn(
      { samples: buffer.end - buffer.first, hours },
      'the sample buffer is full because no orchestrator has stored samples; dropping the oldest',
    );
  }

  /**
   * Returns the time of a new sample in Unix seconds. It is later than that of every other sample, so that the store
   * keeps all samples in order.
   * @returns null to skip the sample, because the clock was set back a little and this period already has samples
   */
  async #time(): Promise<number | null> {
    const { clock, buffer, log } = this.#options;
    const at = Math.floor(clock.now() / 1000);
    if (at > this.#newest) return at;
    if (at === this.#newest) {
      // The wall clock and the monotonic clock drift apart, so with an interval of one second, two samples may fall
      // into the same second.
      await new Promise<void>((resolve) => {
        clock.after(1000 - (clock.now() % 1000), resolve);
      });
      const later = Math.floor(clock.now() / 1000);
      return later > this.#newest ? later : null;
    }
    if (this.#newest - at <= maxClockWaitSecs || clock.monotonic() < this.#waitForClockUntil) {
      this.#cpu = this.#readCpu();
      return null;
    }
    const dropped = buffer.end - buffer.first;
    this.#dropAll();
    log.warn(
      { by_secs: this.#newest - at, dropped },
      "this machine's clock was set back; dropped all unsent samples, because some have timestamps in the future",
    );
    return at;
  }

  #readCpu(): CpuTimes | null {
    return read(this.#options.source, '/proc/stat', parseCpuTimes);
  }

  #measure(collected_at: number): Omit<Sample, 'disk_total' | 'disk_used'> {
    const { source } = this.#options;
    const cpu = this.#readCpu();
    const memory: Memory | null = read(source, '/proc/meminfo', parseMemory);
    const before = this.#cpu;
    this.#cpu = cpu;
    const traffic = this.#traffic();
    return {
      collected_at,
      cpu_usage: before === null || cpu === null ? null : cpuUsage(before, cpu),
      memory_total: memory?.total ?? null,
      memory_used: memory?.used ?? null,
      swap_used: memory?.swapUsed ?? null,
      load1: read(source, '/proc/loadavg', parseLoad),
      net_rx_bytes: traffic?.received ?? null,
      net_tx_bytes: traffic?.sent ?? null,
      processes: countProcesses(source.names('/proc')),
      uptime: read(source, '/proc/uptime', parseUptime),
    };
  }

  #traffic() {
    const { source } = this.#options;
    const traffic = read(source, '/proc/net/dev', parseTraffic);
    if (traffic === null) return null;
    const of = [...traffic.keys()].join('\n');
    // Cached, because inspecting hundreds of interfaces would cost more than all other measurements together.
    if (of !== this.#interfaces.of)
      this.#interfaces = {
        of,
        counted: countedInterfaces(traffic.keys(), (name) =>
          relationsOf(source.exists(`/sys/class/net/${name}/device`), source.names(`/sys/class/net/${name}`)),
        ),
      };
    return sumTraffic(traffic, this.#interfaces.counted);
  }
}

function read<T>(source: MachineSource, path: string, parse: (text: string) => T | null): T | null {
  const text = source.text(path);
  return text === null ? null : parse(text);
}
