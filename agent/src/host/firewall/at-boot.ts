import { rmSync } from 'node:fs';
import { HostFailure } from '../failure.ts';
import { writeRootFile } from '../files/root-file.ts';
import type { Runner } from '../processes/run-command.ts';
import { exists, readText } from '../read-system.ts';
import { reasonOf, run } from './programs.ts';

/** Loads the table at boot, with a rule file and a unit that loads the file. */

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

/** Returns the rules that are loaded at boot; null if there are none. */
export const bootText = (): string | null =>
  !hasSystemd() || (readText(unitFile) === unitText && exists(link)) ? readText(bootFile) : null;

/** @param text null to load no rules at boot */
export async function saveForBoot(text: string | null, runner: Runner): Promise<void> {
  if (text === null) {
    if (exists(unitFile)) await systemctl(['disable', '--now', '--quiet', unit], runner);
    return deleteFiles(runner);
  }
  await replace(bootFile, text);
  if (!hasSystemd()) return;
  await replace(unitFile, unitText);
  if (!exists(link)) await systemctl(['enable', '--quiet', unit], runner);
}

/**
 * Removes files left by a change that was interrupted before the unit was enabled, or after it was disabled. Without
 * these files, nothing is loaded at boot, and the change starts again.
 */
export async function removeDisabled(runner: Runner): Promise<void> {
  if (hasSystemd() && !exists(link) && [unitFile, bootFile].some(exists)) await deleteFiles(runner);
}

async function deleteFiles(runner: Runner): Promise<void> {
  for (const path of [unitFile, bootFile]) rmSync(path, { force: true });
  if (hasSystemd()) await systemctl(['daemon-reload'], runner);
}

async function systemctl(args: readonly string[], runner: Runner): Promise<void> {
  const result = await run('systemctl', args, runner);
  if (result.exitCode !== 0)
    throw new HostFailure(
      `cannot change the firewall rules for the next boot (systemctl ${args[0]}): ${reasonOf(result)}`,
    );
}

const replace = async (path: string, text: string): Promise<void> => {
  if (readText(path) !== text) await writeRootFile(path, text, 0o644);
};
