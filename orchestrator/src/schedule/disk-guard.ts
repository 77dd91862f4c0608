import type { Clock } from '../../../lib/src/clock.ts';
import {
  type DiskSpace,
  type DiskUsage,
  isLowRecorded,
  judgeDisk,
  recordDiskSpace,
} from '../domain/fleet/disk-space.ts';
import type { Context } from '../domain/shared/context.ts';

/** Measures the free space of the data directory in the background, so that no request waits for a measurement. */

const defaultIntervalMs = 5_000;
/**
 * Interval in milliseconds while free space is near the reserve. A burst of writes could fill the disk within the usual
 * interval.
 */
const nearMs = 1_000;
/** Free space below this multiple of the reserve counts as near the reserve. */
const nearReserves = 4;

export interface DiskGuardOptions {
  /** Reads free and total space from the file system. */
  usage(): Promise<DiskUsage>;
  /**
   * Returns the bytes to keep free; null to derive them from the size of the file system. Called for each measurement.
   */
  reserve(): number | null;
}

export interface DiskGuard {
  /** The last measurement; null until the first measurement, or after a failed measurement. */
  readonly space: DiskSpace | null;
  readonly low: boolean;
  /** Measures once, for startup and tests. Never rejects. */
  look(): Promise<void>;
  stop(): Promise<void>;
}

export function startDiskGuard(context: Context, clock: Clock, options: DiskGuardOptions): DiskGuard {
  const { log } = context;
  let space: DiskSpace | null = null;
  /** Whether the newest disk-space event reports low space; null until that event is read. */
  let recordedLow: boolean | null = null;
  let blind = false;
  let stopped = false;
  let cancelTimer = () => {};
  let running: Promise<void> = Promise.resolve();

  const measure = async () => {
    try {
      const before = space?.low ?? false;
      space = judgeDisk(await options.usage(), options.reserve(), before);
      blind = false;
      const about = { free: space.free, size: space.size, reserve: space.reserve };
      if (space.low && !before)
        log.error(about, 'disk nearly full; requests that would add data are refused until space is freed');
      else if (before && !space.low) log.info(about, 'disk space recovered; all requests are accepted');
    } catch (error) {
      // Accepts requests if free space is unknown. If the disk is full, writes fail anyway.
      space = null;
      if (!blind) log.warn({ err: error }, 'failed to read free disk space');
      blind = true;
    }
  };
  const record = async () => {
    if (space === null) return;
    try {
      recordedLow ??= await isLowRecorded(context);
      if (recordedLow === space.low) return;
      await recordDiskSpace(context, space);
      recordedLow = space.low;
    } catch (error) {
      log.debug({ err: error }, 'failed to record disk-space event; will retry');
    }
  };
  const look = async () => {
    await measure();
    await record();
  };
  const schedule = () => {
    const near = space !== null && space.free < space.reserve * nearReserves;
    cancelTimer = clock.after(near ? nearMs : defaultIntervalMs, () => {
      running = look().then(() => {
        if (!stopped) schedule();
      });
    });
  };
  schedule();
  return {
    get space() {
      return space;
    },
    get low() {
      return space?.low ?? false;
    },
    look,
    async stop() {
      stopped = true;
      cancelTimer();
      await running;
    },
  };
}
