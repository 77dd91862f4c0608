import { readFileSync } from 'node:fs';
import { namesIn } from './read-system.ts';
import { identityOf, type ProcessIdentity } from './run-command.ts';

/**
 * The processes of a session: what was started in a terminal and did not take a session of its own, as `setsid` and
 * `tmux` do. Known by the number of the process that began it.
 */
export type ProcessSession = ProcessIdentity;

/** Numbers of those that run in each session, without the dead that nobody has asked about. */
export function membersOf(sessions: Iterable<ProcessSession>): Map<ProcessSession, number[]> {
  const members = new Map([...sessions].map((session) => [session.pid, { session, pids: [] as number[] }]));
  for (const pid of namesIn('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // The second field, the program's name in parentheses, may hold anything.
      const [state, , , sid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (state !== 'Z' && state !== 'X') members.get(Number(sid))?.pids.push(Number(pid));
    } catch {
      // It ended meanwhile.
    }
  }
  // While one of them is left the kernel gives the number to nobody else; once none was, it may have.
  const isReused = ({ pid, startTicks }: ProcessSession) => identityOf(pid).startTicks !== startTicks;
  return new Map(
    [...members.values()].map(({ session, pids }) => [
      session,
      pids.includes(session.pid) && isReused(session) ? [] : pids,
    ]),
  );
}

/** Ends processes at once. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended meanwhile.
    }
}
