import { readFileSync, writeFileSync } from 'node:fs';

/** Minimum kernel limits by path. With the kernel's defaults, systemd fails in about the twentieth machine. */
const wanted: Readonly<Record<string, number>> = {
  '/proc/sys/fs/inotify/max_user_instances': 8192,
  '/proc/sys/kernel/keys/maxkeys': 2000,
};

/** Raises kernel limits that are below the minimum. */
export function raiseKernelLimits(): void {
  for (const [path, least] of Object.entries(wanted))
    if (Number(readFileSync(path, 'utf8')) < least) writeFileSync(path, String(least));
}
