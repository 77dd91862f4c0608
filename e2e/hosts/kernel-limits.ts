import { readFileSync, writeFileSync } from 'node:fs';

/** Minimum kernel limits by path. With the kernel's defaults, systemd fails on about the twentieth machine. */
const minimums: Readonly<Record<string, number>> = {
  '/proc/sys/fs/inotify/max_user_instances': 8192,
  '/proc/sys/kernel/keys/maxkeys': 2000,
};

/** Raises kernel limits that are below the minimum. */
export function raiseKernelLimits(): void {
  for (const [path, minimum] of Object.entries(minimums))
    if (Number(readFileSync(path, 'utf8')) < minimum) writeFileSync(path, String(minimum));
}
