import { readFileSync } from 'node:fs';
import { identityOf, type ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { namesIn, readText } from '../read-system.ts';

/**
 * A process session: all processes that were started in a terminal, except those that create their own session, such as
 * `setsid` and `tmux`. The session ID is the PID of its first process.
 */
export interface ProcessSession extends ProcessIdentity {
  /**
   * The scope in which the session was started; null if there was none. Set only for a session that an earlier agent
   * process started, because its ID may have been reused. Without a scope, such a session is recognized only while its
   * first process runs.
   */
  readonly within?: string | null;
}

/** A session's running processes. */
export interface Members {
  /** Excludes zombies. */
  readonly pids: number[];
  readonly groups: Set<number>;
}

const noMembers: Members = { pids: [], groups: new Set() };

export function membersOf(sessions: Iterable<ProcessSession>): Map<ProcessSession, Members> {
  const members = new Map(
    [...sessions].map((session) => [session.pid, { session, pids: [] as number[], groups: new Set<number>() }]),
  );
  // Newest first, because short-lived processes may exit during the scan.
  const numbers = namesIn('/proc').filter((name) => /^\d+$/.test(name));
  for (const pid of numbers.sort((a, b) => Number(b) - Number(a))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // The second field is the program name in parentheses and may contain spaces and parentheses.
      const [state, , group, sid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const found = state === 'Z' || state === 'X' ? undefined : members.get(Number(sid));
      if (found === undefined) continue;
      found.pids.push(Number(pid));
      // kill(2) interprets 0 as the caller's group, and -1 as all processes.
      if (Number(group) > 1) found.groups.add(Number(group));
    } catch {
      // The process exited during the scan.
    }
  }
  return new Map(
    [...members.values()].map(({ session, ...found }) => [session, isStill(session, found.pids) ? found : noMembers]),
  );
}

/** Guards against a reused session ID. The kernel reuses an ID only when the session has no members. */
function isStill({ pid, startTicks, within }: ProcessSession, found: readonly number[]): boolean {
  if (found.includes(pid)) return identityOf(pid).startTicks === startTicks;
  return within === undefined || (within !== null && found.some((member) => isWithin(member, within)));
}

/** Checks all cgroup hierarchies. */
const isWithin = (pid: number, scope: string): boolean =>
  (readText(`/proc/${pid}/cgroup`) ?? '').split('\n').some((line) => line.endsWith(`/${scope}`));

/** Sends SIGHUP, followed by SIGCONT so that stopped processes receive it. */
export function hangUpAll(members: Members): void {
  signalAll(members, 'SIGHUP');
  signalAll(members, 'SIGCONT');
}

export function killAll(members: Members): void {
  signalAll(members, 'SIGKILL');
}

/**
 * Signals whole process groups, so that no process can escape by forking during the call. A group never spans two
 * sessions.
 */
function signalAll({ groups }: Members, signal: NodeJS.Signals): void {
  for (const group of groups)
    try {
      process.kill(-group, signal);
    } catch {
      // The group no longer exists.
    }
}
