import { rmSync } from 'node:fs';
import { HostFailure } from '../failure.ts';
import { writeRootFile } from '../files/root-file.ts';
import type { Runner } from '../processes/run-command.ts';
import { exists } from '../read-system.ts';
import { reasonOf, run, workDirectory } from './programs.ts';

/** Reads and replaces an nftables table with nft(8). */

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
