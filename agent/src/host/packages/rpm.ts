import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { lastLine } from '../processes/failure-text.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { type InstalledPackages, installedPackages, type NamedVersion } from './installed-packages.ts';
import { compareRpmVersions } from './rpm-version.ts';

/** Reads the installed packages from rpm. */

const fields = ['%{NAME}', '%{EPOCHNUM}', '%{VERSION}', '%{RELEASE}', '%{ARCH}'];

/**
 * Reads all packages with one query.
 * @throws HostFailure if this machine has no rpm, or rpm cannot read its database
 */
export async function readRpm(context: {
  clock: Clock;
  limits: { packageMs: number };
  startedProcess(process: ProcessIdentity): void;
}): Promise<InstalledPackages> {
  const { exitCode, stdout, stderr }: CommandResult = await runCommand(
    {
      program: 'rpm',
      args: ['--query', '--all', '--queryformat', `${fields.join('\\t')}\\n`],
      environment: { LC_ALL: 'C.UTF-8' },
      timeLimit: context.limits.packageMs,
      outputCap: 32 * 1024 * 1024,
      started: context.startedProcess,
    },
    context.clock,
  );
  if (exitCode !== 0)
    throw new HostFailure(`rpm cannot read its database: ${lastLine(stderr) || 'it printed no error'}`);
  return parseRpm(stdout);
}

/** @param text one line for each package: name, epoch, version, release, architecture */
export const parseRpm = (text: string): InstalledPackages => installedPackages(parsePackages(text), compareRpmVersions);

/** Parses lines of name, epoch, version, release, and architecture. Skips other lines. */
export function parsePackages(text: string): NamedVersion[] {
  return text.split('\n').flatMap((line) => {
    const [name, epoch, version, release, arch, ...more] = line.split('\t');
    if (!name || version === undefined || release === undefined || !arch || more.length > 0) return [];
    // rpm lists imported signature keys as packages with this name.
    if (name === 'gpg-pubkey' || !/^\d+$/.test(epoch ?? '')) return [];
    return [{ name, epoch: Number(epoch), version, release, arch }];
  });
}
