import { userInfo } from 'node:os';
import type { Clock } from '../../../../lib/src/clock.ts';
import { HostFailure } from '../failure.ts';
import { runCommand } from '../processes/run-command.ts';
import { readAccountFiles } from './account-files.ts';

/** What a login needs to know of an account. */
export interface LoginAccount {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** As the account has it; empty: the system's own. */
  readonly shell: string;
}

/** The account that this process runs as. */
export function ownAccount(): LoginAccount {
  try {
    const { username: name, uid, gid, homedir: home, shell } = userInfo();
    return { name, uid, gid, home, shell: shell ?? '' };
  } catch {
    // A number without a name, as in a container.
    const uid = process.geteuid?.() ?? 0;
    return { name: String(uid), uid, gid: process.getegid?.() ?? 0, home: '/', shell: '' };
  }
}

/**
 * An account by its name, wherever this machine has its accounts from.
 * @throws HostFailure when there is none
 */
export async function accountOf(name: string, clock: Clock): Promise<LoginAccount> {
  const own = ownAccount();
  if (own.name === name) return own;
  const entry = readAccountFiles().users.get(name) ?? (await askedFor(name, clock));
  if (entry === null) throw new HostFailure(`there is no user ${name} on this machine`);
  return entry;
}

/** From a directory service, for example. */
async function askedFor(name: string, clock: Clock): Promise<LoginAccount | null> {
  if (readAccountFiles().otherSources.length === 0) return null;
  const { exitCode, stdout } = await runCommand(
    { program: 'getent', args: ['passwd', '--', name], timeLimit: 10_000, outputCap: 4096 },
    clock,
  );
  const [found, , uid = '', gid = '', , home = '', shell = ''] = stdout.trimEnd().split(':');
  const isEntry = exitCode === 0 && found === name && /^\d+$/.test(uid) && /^\d+$/.test(gid);
  return isEntry ? { name, uid: Number(uid), gid: Number(gid), home, shell } : null;
}
