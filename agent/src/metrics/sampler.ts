import type { Sample } from '@muster/protocol';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { MachineSource } from '../host/machine-source.ts';
import { DiskReader } from './disks.ts';
import { backingOf, countedInterfaces, parseTraffic, sumTraffic } from './network.ts';
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

/** What holds without a configuration. */
export const defaultMetrics: MetricsSettings = { enabled: true, collection_interval: 30 };

/** Soon after the start, for whoever waits to see the machine: long enough for a first figure of its processors. */
const firstMs = 5_000;
/**
 * A clock that was set back by no more than this is waited for: the time until then has its samples already. So long it is
 * waited for after a start in any case, however far back it is: some machines are told the time only after they have booted.
 */
const patienceSecs = 300;

export interface SamplerOptions {
  source: MachineSource;
  buffer: SampleBuffer;
  clock: Clock;
  log: Pick<Log, 'debug' | 'warn' | 'error'>;
  /** As they are now. */
  settings: () => MetricsSettings;
  /** Told when the buffer has changed: one was added, or all were dropped. */
  changed: () => void;
}

/**
 * Measures the machine by a clock of its own, whether or not anybody listens. Goes by the monotonic clock: what was missed
 * while the process stood still or the machine slept is not made up for.
 */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly #disks: DiskReader;
  /** Null while nothing is measured. */
  #intervalMs: number | null = null;
  /** When the last one was due. */
  #lastDue = 0;
  #cpu: CpuTimes | null = null;
  /** Unix seconds of the newest sample. */
  #newest = Number.NEGATIVE_INFINITY;
  /** Until then a clock that is behind is waited for. */
  #patientUntil = Number.NEGATIVE_INFINITY;
  #isTaking = false;
  #saidFull = false;
  #interfaces: { of: string; counted: string[] } = { of: '', counted: [] };
  #callOff = () => {};

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#disks = new DiskReader(options.source, options.clock);
    const { buffer, clock } = options;
    // Those that a process before this one took.
    if (buffer.first === buffer.end) return;
    this.#newest = buffer.timeOf(buffer.end - 1);
    this.#patientUntil = clock.monotonic() + patienceSecs * 1000;
  }

  /** Begins, goes on at another pace or ends, as the settings now say. */
  update(): void {
    const { clock, settings } = this.#options;
    const { enabled, collection_interval } = settings();
    const intervalMs = enabled ? collection_interval * 1000 : null;
    // Whoever turns it off wants nothing told either.
    if (intervalMs === null) this.#dropAll();
    if (intervalMs === this.#intervalMs) return;
    const isNew = this.#intervalMs === null;
    this.#intervalMs = intervalMs;
    this.#callOff();
    if (intervalMs === null) return;
    if (isNew) {
      this.#cpu = this.#readCpu();
      this.#lastDue = clock.monotonic() + Math.min(intervalMs, firstMs) - intervalMs;
    }
    this.#wait();
  }

  end(): void {
    this.#intervalMs = null;
    this.#callOff();
  }

  #dropAll(): void {
    const { buffer, changed } = this.#options;
    buffer.drop(buffer.end);
    changed();
  }

  #wait(): void {
    const { clock } = this.#options;
    const due = this.#lastDue + this.#intervalMs!;
    this.#callOff = clock.after(Math.max(0, due - clock.monotonic()), () => {
      // One that is late by more than an interval is not followed by those that were missed.
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
      .catch((error: unknown) => this.#options.log.error({ error }, 'a bug: the machine could not be measured'))
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
    // Turned off meanwhile.
    if (this.#intervalMs === null) return;
    if (buffer.first === buffer.end) this.#saidFull = false;
    this.#newest = collected_at;
    const isFull = buffer.push({ ...sample, disk_total: disks?.total ?? null, disk_used: disks?.used ?? null });
    log.debug({ collected_at }, 'the machine was measured');
    this.#options.changed();
    if (!isFull || this.#saidFull) return;
    this.#saidFull = true;
    const hours = Math.round((clock.now() / 1000 - buffer.timeOf(buffer.first)) / 360) / 10;
    log.warn(
      { samples: buffer.end - buffer.first, hours },
      'nobody has taken the samples of this machine for long: the oldest make room for new ones',
    );
  }

  /**
   * The second of this sample: later than that of every other one, so that the store keeps them in order and each once.
   * @returns null when there is to be none: the clock was set back a little, and that time has its samples
   */
  async #time(): Promise<number | null> {
    const { clock, buffer, log } = this.#options;
    const at = Math.floor(clock.now() / 1000);
    if (at > this.#newest) return at;
    if (at === this.#newest) {
      // The two clocks do not run quite alike: a sample each second would now and then be the second one of a second.
      await new Promise<void>((resolve) => {
        clock.after(1000 - (clock.now() % 1000), resolve);
      });
      const later = Math.floor(clock.now() / 1000);
      return later > this.#newest ? later : null;
    }
    if (this.#newest - at <= patienceSecs || clock.monotonic() < this.#patientUntil) {
      this.#cpu = this.#readCpu();
      return null;
    }
    const dropped = buffer.end - buffer.first;
    this.#dropAll();
    log.warn(
      { by_secs: this.#newest - at, dropped },
      'the clock of this machine was set back: samples that were not sent had times that are yet to come, and are dropped',
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
    // What an interface is does not change, and to look at hundreds of them each time would cost more than all else.
    if (of !== this.#interfaces.of)
      this.#interfaces = {
        of,
        counted: countedInterfaces(traffic.keys(), (name) =>
          backingOf(source.exists(`/sys/class/net/${name}/device`), source.names(`/sys/class/net/${name}`)),
        ),
      };
    return sumTraffic(traffic, this.#interfaces.counted);
  }
}

function read<T>(source: MachineSource, path: string, parse: (text: string) => T | null): T | null {
  const text = source.text(path);
  return text === null ? null : parse(text);
}
