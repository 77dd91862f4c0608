import { readFileSync, writeFileSync } from 'node:fs';

/** With the kernel's default limits, systemd fails at about the twentieth machine. */
const wanted: Readonly<Record<string, number>> = {
  '/proc/sys/fs/inotify/max_user_instances': 8192,
  '/proc/sys/kernel/keys/maxkeys': 2000,
};

/** Raises limits that are too low; never lowers a limit. */
export function raiseKernelLimits(): void {
  for (const [path, least] of Object.entries(wanted))
    if (Number(readFileSync(path, 'utf8')) < least) writeFileSync(path, String(least));
}
