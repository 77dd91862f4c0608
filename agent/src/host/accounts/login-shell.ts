import { type ChildProcess, spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Clock } from '../../../../lib/src/clock.ts';
import { identityOf } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { withoutInherited } from '../processes/inherited-files.ts';
import type { ProcessSession } from '../processes/process-session.ts';
import { killProcessGroup, runCommand } from '../processes/run-command.ts';
import { inScope, pathOfProgram, type ScopedLaunch } from '../processes/transient-scope.ts';
import { openPty, type Pty } from '../pty/pty.ts';
import { readText } from '../read-system.ts';
import { type LoginAccount, ownAccount } from './login-account.ts';
import { loginEnvironment, readLoginFiles } from './login-environment.ts';

/** Starts login shells in terminals, as `sshd` and `su -` do. */

export interface LoginRequest {
  readonly account: LoginAccount;
  /** Path of an executable file. */
  readonly shell: string;
  readonly cols: number;
  readonly rows: number;
  /** Cancels startup when it resolves. If startup does not finish within `cancelGraceMs` after that, it is aborted. */
  readonly cancelled: Promise<unknown>;
  /** Called if systemd refuses a scope for the shell. */
  warn(message: string): void;
}

export interface LoginEvents {
  /** Called with output, as in `PtyEvents`. */
  output(bytes: Buffer): boolean;
  /** Called once: after all output, or immediately after `hangUp`. */
  exited(code: number | null, signal: string | null): void;
}

export interface LoginShell extends Pick<Pty, 'resume' | 'write' | 'resize'> {
  readonly session: ProcessSession;
  /** Name of the shell's scope; null if the shell runs without a scope. */
  readonly scope: string | null;
  /** Closes the terminal: sends SIGHUP to the shell and its foreground processes, and stops output. */
  hangUp(): void;
}

/**
 * Runs inside the terminal, which becomes the controlling terminal of its session. Keeps the agent's privileges for the
 * next step, but not the agent's protection from the OOM killer.
 */
const enterTerminalScript = `
exec 0<>"$1" 1>&0 4>&- || exit 125
shift
stty iutf8 2>/dev/null
if read -r adjustment 2>/dev/null </proc/self/oom_score_adj; then
  case $adjustment in -*) echo 0 2>/dev/null >/proc/self/oom_score_adj ;; esac
fi
exec "$@"`;

/**
 * Runs as the user. Reports success, closes all files except the terminal, and executes the shell with a leading dash
 * in its name, so that it becomes a login shell. A launcher without `exec -a` does not support two-digit file
 * descriptors either. In that case, closes only descriptor 3, and passes `-l` to shells that support this option.
 */
const becomeShellScript = `
umask 022
ulimit -S -n 1024 2>/dev/null
cd "$HOME" 2>/dev/null || cd / || exit 125
unset OLDPWD
if (exec -a x true) 2>/dev/null; then dash=yes; else dash=no; fi
echo >&3
exec 2>&0
if [ $dash = yes ]; then
  for file in /proc/self/fd/*; do
    file=\${file##*/}
    [ "$file" -gt 2 ] 2>/dev/null && eval "exec $file>&-"
  done
  exec -a "-\${1##*/}" "$1"
fi
exec 3>&-
case \${1##*/} in
  sh|ash|bash|dash|fish|ksh|mksh|zsh) exec "$1" -l ;;
esac
exec "$1"`;

/** Interactive shells ignore SIGTERM. Without SIGHUP, stopping a scope, for example at shutdown, would take 90 s. */
const scopeProperties = ['SendSIGHUP=yes'];

/** Maximum number of bytes of launcher output to keep before the shell begins. */
const maxLauncherOutput = 4096;
/** Startup timeout, in milliseconds. Creating the scope and changing the user may wait for other services. */
const startTimeoutMs = 8_000;
const cancelGraceMs = 1_000;

/**
 * Starts a login shell. Resolves when the shell has begun.
 * @throws HostFailure
 */
export async function startLoginShell(request: LoginRequest, events: LoginEvents, clock: Clock): Promise<LoginShell> {
  const launcher = pathOfProgram('bash') ?? '/bin/sh';
  const asUser = [
    ...(await switchUserPrefix(request.account, clock)),
    launcher,
    '-c',
    becomeShellScript,
    'sh',
    request.shell,
  ];
  let isCancelled = false;
  request.cancelled.then(() => {
    isCancelled = true;
  });
  const started = await inScope(
    { purpose: 'terminal', program: launcher, args: [], properties: scopeProperties, warn: request.warn },
    (launch) => start(request, events, clock, asUser, launcher, launch),
    (outcome) => (outcome instanceof FailedStart && !isCancelled ? outcome.output : null),
  );
  if (started instanceof FailedStart) throw started.failure();
  return started;
}

class FailedStart {
  readonly output: string;
  constructor(output: string) {
    this.output = output;
  }

  failure(): HostFailure {
    const output = this.output.trim().slice(-600);
    return new HostFailure(`the shell did not start${output === '' ? '' : `: ${output}`}`);
  }
}

async function start(
  request: LoginRequest,
  events: LoginEvents,
  clock: Clock,
  asUser: readonly string[],
  launcher: string,
  scope: ScopedLaunch | null,
): Promise<LoginShell | FailedStart> {
  let exit: { code: number | null; signal: string | null } | null = null;
  let hasReported = false;
  let hasEnded = false;
  let isStarted = false;
  const reportExit = () => {
    if (!isStarted || hasReported || exit === null || !hasEnded) return;
    hasReported = true;
    events.exited(exit.code, exit.signal);
  };
  const pty = await openPty(request.cols, request.rows, {
    output: (bytes) => events.output(bytes),
    ended() {
      hasEnded = true;
      reportExit();
    },
  });
  try {
    giveTo(pty, request.account);
    const inTerminal = ['-c', enterTerminalScript, 'sh', pty.path, ...asUser];
    const [program, args] = scope === null ? [launcher, inTerminal] : [scope.program, [...scope.args, ...inTerminal]];
    const child = spawn(program, args, {
      cwd: '/',
      env: loginEnvironment(request.account, request.shell, readLoginFiles()),
      stdio: withoutInherited([
        ...(['ignore', 'ignore', 'pipe', 'pipe', pty.outerFd] as const),
        ...(scope === null ? [] : [scope.markFd]),
      ]),
      detached: true,
    });
    const exited = new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        exit = { code, signal };
        pty.finish();
        reportExit();
        resolve();
      });
    });
    const outcome = await untilStarted(child, exited, request.cancelled, clock);
    pty.started();
    if (outcome !== null) {
      pty.close();
      return new FailedStart(outcome);
    }
    isStarted = true;
    return {
      session: identityOf(child.pid as number),
      scope: scope?.unit ?? null,
      resume: () => pty.resume(),
      write: (bytes) => pty.write(bytes),
      resize: (cols, rows) => pty.resize(cols, rows),
      hangUp() {
        pty.close();
        hasEnded = true;
        reportExit();
      },
    };
  } catch (error) {
    pty.close();
    throw error;
  }
}

/**
 * Waits until the launcher reports that it is about to become the shell.
 * @returns null, or the reason if the launcher failed or took too long
 */
function untilStarted(
  child: ChildProcess,
  exited: Promise<void>,
  cancelled: Promise<unknown>,
  clock: Clock,
): Promise<string | null> {
  const stdio = child.stdio as ChildProcess['stdio'] | undefined;
  // `stdio` is missing if this process has too many open files. In that case, `error` reports the failure.
  if (stdio === undefined) return new Promise((resolve) => child.once('error', (error) => resolve(error.message)));
  const errors = stdio[2] as Readable;
  const status = stdio[3] as Readable;
  let output = '';
  errors.on('data', (piece: Buffer) => {
    if (output.length < maxLauncherOutput) output += piece.toString('utf8');
  });
  return new Promise((resolve) => {
    const giveUp = (why: string) => {
      if (child.pid !== undefined) killProcessGroup(child.pid);
      settle(why);
    };
    const cancelTimers = [clock.after(startTimeoutMs, () => giveUp(`it took longer than ${startTimeoutMs / 1000} s`))];
    let isSettled = false;
    cancelled.then(() => {
      if (!isSettled)
        cancelTimers.push(clock.after(cancelGraceMs, () => giveUp('the terminal was closed before it was open')));
    });
    const settle = (outcome: string | null) => {
      isSettled = true;
      for (const cancelTimer of cancelTimers) cancelTimer();
      errors.destroy();
      status.destroy();
      resolve(outcome);
    };
    for (const stream of [errors, status]) stream.on('error', () => {});
    child.once('error', (error) => settle(error.message));
    status.once('data', () => settle(null));
    // The last output of the shell may still be in the pipe after the shell has exited.
    exited.then(() => (errors.closed ? settle(output) : errors.once('close', () => settle(output))));
  });
}

/**
 * Makes the user the owner of the terminal. Denies access to others, except to the group `tty` if it can be set.
 * @throws HostFailure
 */
function giveTo(pty: Pty, { uid, gid }: LoginAccount): void {
  const group = terminalGroup();
  try {
    if (group !== null) {
      pty.giveTo(uid, group, 0o620);
      return;
    }
  } catch {
    // Only root may set the group, and some containers forbid it.
  }
  try {
    pty.giveTo(uid, gid, 0o600);
  } catch (error) {
    // The kernel already gave the terminal to this user.
    if (uid !== process.geteuid?.()) throw error;
  }
}

/** Returns the GID of the group that `write` and `wall` use to write to terminals. */
function terminalGroup(): number | null {
  const gid = /^tty:[^:]*:(\d+):/m.exec(readText('/etc/group') ?? '')?.[1];
  return gid === undefined ? null : Number(gid);
}

/**
 * Returns the command prefix that runs a command as this account, with exactly its groups.
 * @throws HostFailure
 */
async function switchUserPrefix(account: LoginAccount, clock: Clock): Promise<string[]> {
  const own = ownAccount();
  if (account.uid === own.uid) return [];
  if (process.geteuid?.() !== 0)
    throw new HostFailure(
      `the agent runs as ${own.name} and cannot start a shell as ${account.name}; run it as root, or remove remote_terminal.user from its configuration`,
    );
  const setpriv = pathOfProgram('setpriv');
  // busybox's setpriv does not support groups.
  if (setpriv !== null && !realpathSync(setpriv).endsWith('/busybox')) {
    const groups = (await groupsOf(account, clock)).join(',');
    return [setpriv, `--reuid=${account.uid}`, `--regid=${account.gid}`, `--groups=${groups}`, '--inh-caps=-all', '--'];
  }
  const runuser = pathOfProgram('runuser');
  if (runuser !== null) return [runuser, '-u', account.name, '--'];
  throw new HostFailure(
    `a shell as ${account.name} needs setpriv or runuser, and neither is installed on this machine; install util-linux, or remove remote_terminal.user from the agent's configuration`,
  );
}

/**
 * Looks up the groups by name, because setpriv itself would use the first of two accounts with the same ID.
 * @throws HostFailure
 */
async function groupsOf({ name, gid }: LoginAccount, clock: Clock): Promise<string[]> {
  const command = { program: 'getent', args: ['initgroups', '--', name], timeLimit: 10_000, outputCap: 1024 * 1024 };
  const { exitCode, stdout, stderr } = await runCommand(command, clock);
  const [of, ...others] = stdout.trim().split(/\s+/);
  if (exitCode === 0 && of === name && others.every((group) => /^\d+$/.test(group))) return [`${gid}`, ...others];
  throw new HostFailure(
    `cannot look up the groups of ${name}: ${stderr.trim().slice(0, 300) || `getent exited with ${exitCode}`}`,
  );
}

/** Returns the shells that `chsh` accepts on this machine. */
export function listedShells(): string[] {
  const text = readText('/etc/shells');
  // The C library's default, for a machine without the file.
  if (text === null) return ['/bin/sh', '/bin/csh'];
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith('/'));
}
