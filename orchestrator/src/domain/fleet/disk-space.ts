import { deleteSetting, putSetting, setting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, systemActor } from '../shared/context.ts';

/** Decides whether the data directory's file system is low on free space, and records each change once. */

/** File-system sizes, in bytes. */
export interface DiskUsage {
  readonly size: number;
  /** Bytes available to this process. */
  readonly free: number;
}

export interface DiskSpace extends DiskUsage {
  /** Free bytes below which space is low; 0 disables the check. */
  readonly reserve: number;
  readonly low: boolean;
}

const defaultReserve = 256 * 1024 * 1024;
const defaultShare = 0.02;
/** Space stays low until this multiple of the reserve is free, so that the state does not flap. */
const recovery = 1.25;

/**
 * Compares the free space with the reserve.
 * @param configured bytes to reserve; null means 256 MiB, or 2 % of a small file system
 * @param before whether space was low at the last check
 */
export function judgeDisk({ size, free }: DiskUsage, configured: number | null, before: boolean): DiskSpace {
  const reserve = configured ?? Math.min(defaultReserve, Math.floor(size * defaultShare));
  return { size, free, reserve, low: reserve > 0 && free < (before ? reserve * recovery : reserve) };
}

/**
 * Which reports agents may send. `ample`: all. `low`: only small ones, so that operations can end. `spent`: none;
 * agents keep their reports, and the remaining reserve is for pruning.
 */
export type ReportSpace = 'ample' | 'low' | 'spent';

/** Reports may use the reserve until this fraction (1/n) of the reserve remains. */
const floorShare = 4;

/**
 * Decides which reports agents may send.
 * @param space null if unknown, which counts as ample
 */
export function reportSpace(space: DiskSpace | null): ReportSpace {
  if (space === null || !space.low) return 'ample';
  return space.free < space.reserve / floorShare ? 'spent' : 'low';
}

const reportedKey = 'disk_low';

export const isLowRecorded = async ({ db }: Context): Promise<boolean> =>
  (await db.get(setting, { key: reportedKey })) !== undefined;

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 / 1024)} MiB`;

/** Records that space is low or has recovered, so that {@link isLowRecorded} returns the new state. */
export async function recordDiskSpace(context: Context, { size, free, reserve, low }: DiskSpace): Promise<void> {
  const metadata = { size_bytes: size, free_bytes: free, reserve_bytes: reserve };
  await context.db.write({
    name: low ? 'disk/low' : 'disk/recovered',
    statements: [
      low ? statement(putSetting, { key: reportedKey, value: '1' }) : statement(deleteSetting, { key: reportedKey }),
      low
        ? audited(context, {
            type: 'disk.low',
            actor: systemActor,
            summary: `the orchestrator's disk is nearly full: ${mebibytes(free)} of ${mebibytes(size)} are free, and ${mebibytes(reserve)} are reserved; new work is refused, and reports of agents are stored without details`,
            metadata,
          })
        : audited(context, {
            type: 'disk.recovered',
            actor: systemActor,
            summary: `the orchestrator's disk has enough free space again: ${mebibytes(free)} of ${mebibytes(size)} are free`,
            metadata,
          }),
    ],
  });
}
