import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identityOf } from '../../../../lib/src/process-identity.ts';
import { killAll, membersOf, type ProcessSession } from './process-session.ts';

let leader: ChildProcess;
let session: ProcessSession;
let apart: number;

beforeEach(async () => {
  // A session with a background job, and a process that has left the session.
  const program = 'sleep 1001 & setsid sh -c "echo \\$\\$; exec sleep 1002" & wait';
  leader = spawn('sh', ['-c', program], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  const [printed] = await once(leader.stdout!, 'data');
  apart = Number(String(printed));
  session = identityOf(leader.pid!);
});
afterEach(() => {
  killAll(found());
  process.kill(apart);
});

const found = (of: ProcessSession = session) => membersOf([of]).get(of)!;

describe.skipIf(process.platform !== 'linux')('the members of a session', () => {
  test('finds the members of a session whose first process has exited', async () => {
    expect(found().pids).toHaveLength(2);
    leader.kill('SIGKILL');
    await once(leader, 'exit');
    expect(found().pids).toHaveLength(1);
    killAll(found());
    await expect.poll(() => found().pids, { interval: 5 }).toEqual([]);
  });

  test('finds no members if another session reuses the session ID', () => {
    expect(found({ ...session, startTicks: '1' }).pids).toEqual([]);
  });

  test('recognizes the members of a session after a restart', async () => {
    for (const within of [null, 'muster-terminal-0.scope']) expect(found({ ...session, within }).pids).toHaveLength(2);
    leader.kill('SIGKILL');
    await once(leader, 'exit');
    for (const within of [null, 'muster-terminal-0.scope']) expect(found({ ...session, within }).pids).toEqual([]);
  });
});
