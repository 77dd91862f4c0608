import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { HostFailure, hostFailure } from '../failure.ts';
import { exists, readText } from '../read-system.ts';
import { type Runner, run } from './nftables.ts';

/** Loads the table at boot: its text, and the unit that loads it. */

export const bootFile = '/etc/muster-firewall.nft';
const unit = 'muster-firewall.service';
const unitFile = `/etc/systemd/system/${unit}`;
const link = `/etc/systemd/system/sysinit.target.wants/${unit}`;

// After nftables.service, whose rules begin with `flush ruleset`.
const unitText = `# Written by Muster, which removes it with the last firewall-rule.
[Unit]
Description=Firewall rules of Muster
DefaultDependencies=no
Wants=network-pre.target
After=local-fs.target nftables.service
Before=network-pre.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=nft --file ${bootFile}

[Install]
WantedBy=sysinit.target
`;

const hasSystemd = (): boolean => exists('/run/systemd/system');

/** Returns the text that is loaded at boot; null if none is. */
export const bootText = (): string | null =>
  !hasSystemd() || (readText(unitFile) === unitText && exists(link)) ? readText(bootFile) : null;

/** @param text null to load nothing any longer */
export async function saveForBoot(text: string | null, runner: Runner): Promise<void> {
  if (text === null) {
    if (exists(unitFile)) await systemctl(['disable', '--now', '--quiet', unit], runner);
    for (const path of [unitFile, bootFile]) rmSync(path, { force: true });
    if (hasSystemd()) await systemctl(['daemon-reload'], runner);
    return;
  }
  replace(bootFile, text);
  if (!hasSystemd()) return;
  replace(unitFile, unitText);
  if (!exists(link)) await systemctl(['enable', '--quiet', unit], runner);
}

/**
 * Removes the files of a change that was interrupted before the unit was enabled, or after it was disabled. Without them,
 * nothing is loaded at boot, and the change starts again.
 */
export async function removeDisabled(runner: Runner): Promise<void> {
  const files = [unitFile, bootFile].filter(exists);
  if (!hasSystemd() || exists(link) || files.length === 0) return;
  for (const path of files) rmSync(path, { force: true });
  await systemctl(['daemon-reload'], runner);
}

async function systemctl(args: readonly string[], runner: Runner): Promise<void> {
  const { exitCode, stderr } = await run('systemctl', args, runner);
  if (exitCode !== 0)
    throw new HostFailure(
      `cannot change the firewall rules for the next boot (systemctl ${args[0]}): ${stderr.trim().slice(0, 500)}`,
    );
}

function replace(path: string, text: string): void {
  if (readText(path) === text) return;
  const temporary = `${path}.muster-new`;
  try {
    writeFileSync(temporary, text, { mode: 0o644, flush: true });
    renameSync(temporary, path);
  } catch (error) {
    throw hostFailure(error, `write ${path}`);
  }
}
