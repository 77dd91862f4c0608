import type { Clock } from '../clock.ts';
import {
  type DiskRoom,
  type DiskSpace,
  judgeDisk,
  recordDiskSpace,
  toldOfLowDisk,
} from '../domain/fleet/disk-space.ts';
import type { Context } from '../domain/shared/context.ts';

/** Looks how full the disk of the data directory is, now and then: nobody who asks for anything waits for that. */

const usualMs = 5_000;
/** Where the end is near a burst could be faster than the next look. */
const nearMs = 1_000;
const nearReserves = 4;

export interface DiskGuardOptions {
  /** Asks the file system. */
  room(): Promise<DiskRoom>;
  /** Bytes that are kept free; null: what fits the file system. Read at each look. */
  reserve(): number | null;
}

export interface DiskGuard {
  /** As it was when last looked; null: it could not be asked. */
  readonly space: DiskSpace | null;
  readonly low: boolean;
  /** One look, for tests and for start. Never rejects. */
  look(): Promise<void>;
  stop(): Promise<void>;
}

export function startDiskGuard(context: Context, clock: Clock, options: DiskGuardOptions): DiskGuard {
  const { log } = context;
  let space: DiskSpace | null = null;
  /** What the newest event says; null: not read yet. */
  let told: boolean | null = null;
  let blind = false;
  let stopped = false;
  let callOff = () => {};
  let running: Promise<void> = Promise.resolve();

  const measure = async () => {
    try {
      const before = space?.low ?? false;
      space = judgeDisk(await options.room(), options.reserve(), before);
      blind = false;
      const about = { free: space.free, size: space.size, reserve: space.reserve };
      if (space.low && !before)
        log.error(about, 'disk nearly full; requests that would add data are refused until there is room');
      else if (before && !space.low) log.info(about, 'disk has room again; all requests are accepted');
    } catch (error) {
      // Not taken for full: a disk that is will say so itself.
      space = null;
      if (!blind) log.warn({ err: error }, 'failed to read free disk space');
      blind = true;
    }
  };
  const tell = async () => {
    if (space === null) return;
    try {
      told ??= await toldOfLowDisk(context);
      if (told === space.low) return;
      await recordDiskSpace(context, space);
      told = space.low;
    } catch (error) {
      log.debug({ err: error }, 'failed to record disk-space event; will retry');
    }
  };
  const look = async () => {
    await measure();
    await tell();
  };
  const schedule = () => {
    const near = space !== null && space.free < space.reserve * nearReserves;
    callOff = clock.after(near ? nearMs : usualMs, () => {
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
      callOff();
      await running;
    },
  };
}
