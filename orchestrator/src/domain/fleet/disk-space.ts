import { deleteSetting, putSetting, setting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, systemActor } from '../shared/context.ts';

/** Room on the file system of the data directory: when it is short, and that it is said once each way. */

/** As the file system says, in bytes. */
export interface DiskRoom {
  readonly size: number;
  /** What this process may still write. */
  readonly free: number;
}

export interface DiskSpace extends DiskRoom {
  /** Below so many bytes it is low; 0: never. */
  readonly reserve: number;
  readonly low: boolean;
}

const usualReserve = 256 * 1024 * 1024;
const usualShare = 0.02;
/** It is low until so much more than the reserve is free: who writes at the edge would else be let in and out by turns. */
const recovery = 1.25;

/**
 * @param wanted bytes to keep; null: 256 MiB, on a small file system a fiftieth of it
 * @param before whether it was low when it was last looked at
 */
export function judgeDisk({ size, free }: DiskRoom, wanted: number | null, before: boolean): DiskSpace {
  const reserve = wanted ?? Math.min(usualReserve, Math.floor(size * usualShare));
  return { size, free, reserve, low: reserve > 0 && free < (before ? reserve * recovery : reserve) };
}

/**
 * How much agents may report: `ample`, as usual; `low`, what takes little room, so that operations reach an end; `spent`,
 * nothing: they keep it. What is below the floor is for those who make room.
 */
export type ReportRoom = 'ample' | 'low' | 'spent';

/** Of the reserve, what reports leave alone. */
const floorShare = 4;

/** @param space null: not known, which is not taken for full */
export function reportRoom(space: DiskSpace | null): ReportRoom {
  if (space === null || !space.low) return 'ample';
  return space.free < space.reserve / floorShare ? 'spent' : 'low';
}

const toldKey = 'disk_low';

/** Whether the newest event about it says that it is low. */
export const toldOfLowDisk = async ({ db }: Context): Promise<boolean> =>
  (await db.get(setting, { key: toldKey })) !== undefined;

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 / 1024)} MiB`;

/** Puts on record that space is low, or is there again. A restart in between says nothing twice. */
export async function recordDiskSpace(context: Context, { size, free, reserve, low }: DiskSpace): Promise<void> {
  const told = { size_bytes: size, free_bytes: free, reserve_bytes: reserve };
  await context.db.write({
    name: low ? 'disk/low' : 'disk/recovered',
    statements: [
      low ? statement(putSetting, { key: toldKey, value: '1' }) : statement(deleteSetting, { key: toldKey }),
      low
        ? audited(context, {
            type: 'disk.low',
            actor: systemActor,
            summary: `the disk of the orchestrator is nearly full: ${mebibytes(free)} of ${mebibytes(size)} are free, ${mebibytes(reserve)} are kept in reserve; new work is refused, and what agents report is kept without details`,
            metadata: told,
          })
        : audited(context, {
            type: 'disk.recovered',
            actor: systemActor,
            summary: `the disk of the orchestrator has room again: ${mebibytes(free)} of ${mebibytes(size)} are free`,
            metadata: told,
          }),
    ],
  });
}
