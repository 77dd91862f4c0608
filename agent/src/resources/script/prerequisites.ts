import type { ResourceBodies } from '@muster/protocol/module';
import { findAccount } from '../../host/accounts/login-account.ts';
import { HostFailure } from '../../host/failure.ts';
import { pathOfProgram } from '../../host/processes/transient-scope.ts';
import type { Difference, Machine } from '../provider/provider.ts';
import type { ScriptAccount } from './launch.ts';

/** A script's account, and the prerequisites that the machine lacks. */
export interface Prerequisites {
  /** Null to run as the agent's own account. */
  readonly account: ScriptAccount | null;
  readonly missing: NonNullable<Difference['awaits']>;
}

type Needs = Pick<ResourceBodies['script'], 'program' | 'user' | 'group'>;

/** Looks up the interpreter, the user, and the group of a script. */
export async function prerequisitesOf({ program, user, group }: Needs, machine: Machine): Promise<Prerequisites> {
  const missing: NonNullable<Difference['awaits']> = [];
  if (pathOfProgram(program) === null)
    missing.push({ kind: 'programs', message: `${program} is not installed on this machine` });
  if (user == null && group == null) return { account: null, missing };
  const setpriv = pathOfProgram('setpriv');
  if (setpriv === null)
    missing.push({ kind: 'programs', message: 'setpriv, which changes the user, is not installed on this machine' });
  const found = await findAccount(user ?? 'root', machine.clock);
  if (found === null) missing.push({ kind: 'accounts', message: `there is no user ${user} on this machine` });
  const gid = group == null ? (found?.gid ?? null) : machine.accounts.gid(group);
  if (group != null && gid === null)
    missing.push({ kind: 'accounts', message: `there is no group ${group} on this machine` });
  if (found === null || gid === null || setpriv === null) return { account: null, missing };
  return { account: { ...found, gid, setpriv }, missing };
}

/** @throws HostFailure if something is missing */
export async function requirePrerequisites(needs: Needs, machine: Machine): Promise<ScriptAccount | null> {
  const { account, missing } = await prerequisitesOf(needs, machine);
  if (missing.length > 0) throw new HostFailure(missing.map(({ message }) => message).join('; '));
  return account;
}
