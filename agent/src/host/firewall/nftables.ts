import { rmSync } from 'node:fs';
import { HostFailure } from '../failure.ts';
import { failureText } from '../processes/failure-text.ts';
import { type CommandResult, type Runner, runInEnglish } from '../processes/run-command.ts';
import { exists, readText } from '../read-system.ts';
import { writeRootFile } from './root-file.ts';

/** Reads and replaces an nftables table with nft(8). */

/** Directory for the rule files that nft loads. Only root can change it, and it is empty after a boot. */
export const workDirectory = '/run/muster-firewall';

const timeLimit = 60_000;
const outputCap = 4 * 1024 * 1024;

export const run = (program: string, args: readonly string[], runner: Runner): Promise<CommandResult> =>
  runInEnglish(program, args, { timeLimit, outputCap }, runner);

const programPaths = ['/usr/sbin/nft', '/sbin/nft', '/usr/bin/nft', '/usr/local/sbin/nft'];
export const hasNft = (): boolean => programPaths.some(exists);

/**
 * Returns the listing of a table, or null if it does not exist.
 * @throws HostFailure if nft fails
 */
export async function listTable(table: string, runner: Runner): Promise<string | null> {
  const result = await run('nft', ['--stateless', '--numeric-protocol', 'list', 'table', ...table.split(' ')], runner);
  if (result.exitCode === 0 && !result.truncated) return result.stdout;
  if (/No such file or directory/.test(result.stderr)) return null;
  throw new HostFailure(`cannot list the firewall rules: ${reasonOf(result)}`);
}

/**
 * Loads rules in one transaction.
 * @throws HostFailure if nft refuses the rules; nothing has changed in that case
 */
export async function loadText(text: string, runner: Runner): Promise<void> {
  const path = `${workDirectory}/next.nft`;
  await writeRootFile(path, text, 0o600);
  const result = await run('nft', ['--file', path], runner);
  rmSync(path, { force: true });
  if (result.exitCode !== 0) throw new HostFailure(`nft refused the firewall rules: ${reasonOf(result)}`);
}

/** Returns the reason why a program failed. */
export const reasonOf = (result: CommandResult): string =>
  failureText(result, 'it', timeLimit, (stderr) => stderr.trim().slice(0, 500));

/** Returns the program that manages this machine's firewall, if it is not nftables itself; otherwise null. */
export function otherOwner(): string | null {
  if (exists('/run/firewalld') || exists('/run/firewalld.pid')) return 'firewalld';
  return /^\s*ENABLED=yes\s*$/m.test(readText('/etc/ufw/ufw.conf') ?? '') ? 'ufw' : null;
}
