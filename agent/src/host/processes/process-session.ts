import { readFileSync } from 'node:fs';
import { identityOf, type ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { namesIn, readText } from '../read-system.ts';

/**
 * The processes of a session: what was started in a terminal and did not take a session of its own, as `setsid` and
 * `tmux` do. Known by the number of the process that began it.
 */
export interface ProcessSession extends ProcessIdentity {
  /**
   * Of one that was out of sight for a while, whose number may be that of another by now: the scope it was begun in, or
   * null for none. Without a scope it is known only while the process that began it is there.
   */
  readonly within?: string | null;
}

/** What runs in a session. */
export interface Members {
  /** Numbers of the processes, without the dead that nobody has asked about. */
  readonly pids: number[];
  /** Numbers of their process groups. */
  readonly groups: Set<number>;
}

const nobody: Members = { pids: [], groups: new Set() };

export function membersOf(sessions: Iterable<ProcessSession>): Map<ProcessSession, Members> {
  const members = new Map(
    [...sessions].map((session) => [session.pid, { session, pids: [] as number[], groups: new Set<number>() }]),
  );
  // The newest first: what lives only for a moment is still there.
  const numbers = namesIn('/proc').filter((name) => /^\d+$/.test(name));
  for (const pid of numbers.sort((a, b) => Number(b) - Number(a))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // The second field, the program's name in parentheses, may hold anything.
      const [state, , group, sid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const found = state === 'Z' || state === 'X' ? undefined : members.get(Number(sid));
      if (found === undefined) continue;
      found.pids.push(Number(pid));
      // None of this machine's is 0 or 1, which would be others than meant.
      if (Number(group) > 1) found.groups.add(Number(group));
    } catch {
      // It ended meanwhile.
    }
  }
  return new Map(
    [...members.values()].map(({ session, ...found }) => [session, isStill(session, found.pids) ? found : nobody]),
  );
}

/** While one of a session is left the kernel gives its number to nobody else; once none was, it may have. */
function isStill({ pid, startTicks, within }: ProcessSession, found: readonly number[]): boolean {
  if (found.includes(pid)) return identityOf(pid).startTicks === startTicks;
  return within === undefined || (within !== null && found.some((member) => isWithin(member, within)));
}

/** Whichever of the kernel's hierarchies the scopes are in. */
const isWithin = (pid: number, scope: string): boolean =>
  (readText(`/proc/${pid}/cgroup`) ?? '').split('\n').some((line) => line.endsWith(`/${scope}`));

/** Tells them that their terminal is gone, those that are stopped as well. */
export function hangUpAll(members: Members): void {
  signalAll(members, 'SIGHUP');
  signalAll(members, 'SIGCONT');
}

/** Ends them at once. */
export function killAll(members: Members): void {
  signalAll(members, 'SIGKILL');
}

/** By their groups, which are of this session only: what forks meanwhile does not get past it. */
function signalAll({ groups }: Members, signal: NodeJS.Signals): void {
  for (const group of groups)
    try {
      process.kill(-group, signal);
    } catch {
      // It ended meanwhile.
    }
}
