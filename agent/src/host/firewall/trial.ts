import { randomBytes } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { errnoOf, HostFailure, hostFailure } from '../failure.ts';
import { writeRootFile } from '../files/root-file.ts';
import type { Runner } from '../processes/run-command.ts';
import { exists } from '../read-system.ts';
import { reasonOf, run, workDirectory } from './programs.ts';

/**
 * Loads firewall rules on trial: they are rolled back unless the agent can still connect to its orchestrator. A timer
 * outside the agent rolls them back if the agent is killed in the meantime.
 */

/** The agent's link to its orchestrator. */
export interface Link {
  /** Host and port, for messages. */
  readonly address: string;
  /** Tries to open a new connection. Resolves within a few seconds. */
  canConnect(): Promise<boolean>;
}

/** Milliseconds within which a connection must succeed. */
const trialMs = 10_000;
const retryMs = 500;
/** Seconds after which the timer rolls the rules back. Longer than a trial, and less than 30. */
const timerSeconds = 20;
const unit = 'muster-firewall-rollback';
const armed = `${workDirectory}/rollback.sh`;
const claimed = `${workDirectory}/rollback.claimed.sh`;

/** A change of the rules in the kernel. */
export interface Change {
  load(): Promise<void>;
  /** Commands that roll the change back, each with its standard input. They succeed if there is nothing to roll back. */
  undo: readonly { command: string; input: string }[];
}

/**
 * Makes a change on trial.
 * @param link null if the agent has no orchestrator, so that no link can be cut
 * @throws HostFailure if the change is rolled back, or the rules cannot be loaded
 */
export async function loadOnTrial({ load, undo }: Change, link: Link | null, runner: Runner): Promise<void> {
  if (link === null) return load();
  if (!(await link.canConnect()))
    throw new HostFailure(
      `the firewall is not changed, because the agent cannot open a connection to its orchestrator (${link.address}) now, so it could not determine whether the rules block this connection`,
    );
  await arm(undo, runner);
  try {
    await load();
  } catch (error) {
    // A firewall other than nftables may have loaded some of the rules.
    await undoTrial(runner);
    throw error;
  }
  if (await connects(link, runner)) {
    if (await disarm(runner)) return;
    // The last of several commands may have run after the timer.
    await arm(undo, runner);
    await undoTrial(runner);
    throw new HostFailure(
      `the agent took longer than ${timerSeconds} s to check its link, so the former firewall rules were restored`,
    );
  }
  await undoTrial(runner);
  throw new HostFailure(
    `the rules cut the agent's link: it could not open a connection to its orchestrator (${link.address}) within ${trialMs / 1000} s, so the former firewall rules were restored. Accept this connection first.`,
  );
}

async function connects(link: Link, { clock }: Runner): Promise<boolean> {
  const deadline = clock.monotonic() + trialMs;
  for (;;) {
    if (await link.canConnect()) return true;
    if (clock.monotonic() >= deadline) return false;
    await new Promise<void>((resolve) => clock.after(retryMs, resolve));
  }
}

/** Rolls back the rules of an unfinished trial. Does nothing if there is none. */
export async function undoTrial(runner: Runner): Promise<void> {
  if (!exists(armed)) return;
  // Leaves the timer armed until the rules are rolled back: if this process dies, the timer still rolls them back.
  const result = await run('sh', [armed], runner);
  if (!claim()) return;
  await stopTimer(runner);
  rmSync(claimed, { force: true });
  if (result.exitCode !== 0) throw new HostFailure(`cannot restore the former firewall rules: ${reasonOf(result)}`);
}

/** Ends a trial, so that the rules stay in effect. @returns false if the timer has already rolled them back */
async function disarm(runner: Runner): Promise<boolean> {
  if (!claim()) return false;
  await stopTimer(runner);
  rmSync(claimed, { force: true });
  return true;
}

/**
 * Renames the rollback file, so that the timer cannot load it. Either this rename or the timer's succeeds, never both.
 */
function claim(): boolean {
  try {
    renameSync(armed, claimed);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw hostFailure(error, `rename ${armed}`);
  }
}

async function arm(undo: Change['undo'], runner: Runner): Promise<void> {
  await undoTrial(runner);
  await stopTimer(runner);
  // Without systemd, the timer of an earlier trial cannot be stopped. The mark ensures that it loads only its own file.
  const mark = `trial-${randomBytes(8).toString('hex')}`;
  const inputs = undo.map(({ command, input }) => `${command} << '${mark}' || status=1\n${input}\n${mark}\n`);
  await writeRootFile(armed, `status=0\n${inputs.join('')}exit $status # ${mark}\n`, 0o600);
  const timed = `${workDirectory}/rollback.timed.sh`;
  const rollBack = `grep -q ${mark} ${armed} && mv ${armed} ${timed} && sh ${timed}; rm -f ${timed}`;
  const result = exists('/run/systemd/system')
    ? await run(
        'systemd-run',
        [
          ...[
            '--quiet',
            '--collect',
            `--unit=${unit}`,
            `--on-active=${timerSeconds}`,
            '--timer-property=AccuracySec=100ms',
          ],
          ...['--description=Restores the firewall unless the Muster agent confirms its link', 'sh', '-c', rollBack],
        ],
        runner,
      )
    : await run('sh', ['-c', `setsid sh -c 'sleep ${timerSeconds}; ${rollBack}' > /dev/null 2>&1 &`], runner);
  if (result.exitCode === 0) return;
  rmSync(armed, { force: true });
  throw new HostFailure(
    `the firewall is not changed, because the timer that would undo the rules cannot be started: ${reasonOf(result)}`,
  );
}

async function stopTimer(runner: Runner): Promise<void> {
  if (exists('/run/systemd/system')) await run('systemctl', ['stop', `${unit}.timer`], runner);
}
