import { userInfo } from 'node:os';
import type { Clock } from '../../../../lib/src/clock.ts';
import { HostFailure } from '../failure.ts';
import { runCommand } from '../processes/run-command.ts';
import { readAccountFiles } from './account-files.ts';

export interface LoginAccount {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** The login shell; empty for the system default. */
  readonly shell: string;
}

/** Returns the account that this process runs as. */
export function ownAccount(): LoginAccount {
  try {
    const { username: name, uid, gid, homedir: home, shell } = userInfo();
    return { name, uid, gid, home, shell: shell ?? '' };
  } catch {
    // In some containers, the UID has no name.
    const uid = process.geteuid?.() ?? 0;
    return { name: String(uid), uid, gid: process.getegid?.() ?? 0, home: '/', shell: '' };
  }
}

/**
 * Finds an account by name, in the files or through NSS.
 * @throws HostFailure if the account does not exist
 */
export async function accountOf(name: string, clock: Clock): Promise<LoginAccount> {
  const entry = await findAccount(name, clock);
  if (entry === null) throw new HostFailure(`there is no user ${name} on this machine`);
  return entry;
}

/** Finds an account by name, in the files or through NSS. Returns null if it does not exist. */
export async function findAccount(name: string, clock: Clock): Promise<LoginAccount | null> {
  const own = ownAccount();
  if (own.name === name) return own;
  return readAccountFiles().users.get(name) ?? (await fromNss(name, clock));
}

/** Looks up an account that is not in the local files, such as one from a directory service. */
async function fromNss(name: string, clock: Clock): Promise<LoginAccount | null> {
  if (readAccountFiles().otherSources.length === 0) return null;
  const { exitCode, stdout } = await runCommand(
    { program: 'getent', args: ['passwd', '--', name], timeLimit: 10_000, outputCap: 4096 },
    clock,
  );
  const [found, , uid = '', gid = '', , home = '', shell = ''] = stdout.trimEnd().split(':');
  const isEntry = exitCode === 0 && found === name && /^\d+$/.test(uid) && /^\d+$/.test(gid);
  return isEntry ? { name, uid: Number(uid), gid: Number(gid), home, shell } : null;
}
