import { type ChildProcess, spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Clock } from '../clock.ts';
import { HostFailure } from '../failure.ts';
import { withoutInherited } from '../files/inherited-files.ts';
import type { ProcessSession } from '../processes/process-session.ts';
import { identityOf, killProcessGroup, runCommand } from '../processes/run-command.ts';
import { inScope, pathOfProgram, type ScopedLaunch } from '../processes/transient-scope.ts';
import { openPty, type Pty } from '../pty/pty.ts';
import { readText } from '../read-system.ts';
import { type LoginAccount, ownAccount } from './login-account.ts';
import { loginEnvironment, readLoginFiles } from './login-environment.ts';

/** Login shells in terminals, as `sshd` or `su -` would start them. */

export interface LoginWish {
  readonly account: LoginAccount;
  /** An executable file. */
  readonly shell: string;
  readonly cols: number;
  readonly rows: number;
  /** Nobody wants it any more. It is waited for a little longer, and then not begun. */
  readonly calledOff: Promise<unknown>;
  /** Told when it should have a scope of its own and has none. */
  warn(message: string): void;
}

export interface LoginEvents {
  /** What it shows; see `PtyEvents`. */
  output(bytes: Buffer): boolean;
  /** It ended, and all it showed was told. Once; also after `hangUp`, and then at once. */
  exited(code: number | null, signal: string | null): void;
}

export interface LoginShell extends Pick<Pty, 'resume' | 'write' | 'resize'> {
  /** All that was started in it. */
  readonly session: ProcessSession;
  /** The scope it has for itself; null: none. */
  readonly scope: string | null;
  /** The terminal is gone: the shell and what runs in its foreground get SIGHUP. Nothing it shows is told any more. */
  hangUp(): void;
}

/**
 * In the terminal from here on, which becomes that of its session. What is left of the agent's own privileges is kept
 * for the next step, and no protection from running out of memory that the agent may have.
 */
const intoTerminal = `
exec 0<>"$1" 1>&0 4>&- || exit 125
shift
stty iutf8 2>/dev/null
if read -r adjustment 2>/dev/null </proc/self/oom_score_adj; then
  case $adjustment in -*) echo 0 2>/dev/null >/proc/self/oom_score_adj ;; esac
fi
exec "$@"`;

/**
 * As the user from here on. Says that all went well, closes whatever is open besides the terminal, and becomes the shell,
 * with the dash before its name that makes it a login shell. A shell without that for its exec, and without file
 * descriptors of two digits, has no dash to give: there the option that most shells have does it.
 */
const intoShell = `
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

/** Shells do not end by SIGTERM: the stop of a scope, as when the machine shuts down, would wait for 90 s. */
const scopeProperties = ['SendSIGHUP=yes'];

/** What the launcher said and printed before the shell began, at most. */
const outputCap = 4096;
/** Making the scope and becoming the user may wait for other services of the machine. */
const beginLimitMs = 8_000;
const calledOffMs = 1_000;

/**
 * Starts one. It is begun when this resolves.
 * @throws HostFailure
 */
export async function startLoginShell(wish: LoginWish, events: LoginEvents, clock: Clock): Promise<LoginShell> {
  const launcher = pathOfProgram('bash') ?? '/bin/sh';
  const asUser = [...(await becoming(wish.account, clock)), launcher, '-c', intoShell, 'sh', wish.shell];
  let isCalledOff = false;
  wish.calledOff.then(() => {
    isCalledOff = true;
  });
  const started = await inScope(
    { purpose: 'terminal', program: launcher, args: [], properties: scopeProperties, warn: wish.warn },
    (launch) => start(wish, events, clock, asUser, launcher, launch),
    (outcome) => (outcome instanceof NotBegun && !isCalledOff ? outcome.said : null),
  );
  if (started instanceof NotBegun) throw started.failure();
  return started;
}

class NotBegun {
  readonly said: string;
  constructor(said: string) {
    this.said = said;
  }

  failure(): HostFailure {
    const said = this.said.trim().slice(-600);
    return new HostFailure(`the shell did not start${said === '' ? '' : `: ${said}`}`);
  }
}

async function start(
  wish: LoginWish,
  events: LoginEvents,
  clock: Clock,
  asUser: readonly string[],
  launcher: string,
  scope: ScopedLaunch | null,
): Promise<LoginShell | NotBegun> {
  let exit: { code: number | null; signal: string | null } | null = null;
  let isTold = false;
  let hasEnded = false;
  let begun = false;
  const tell = () => {
    if (!begun || isTold || exit === null || !hasEnded) return;
    isTold = true;
    events.exited(exit.code, exit.signal);
  };
  const pty = await openPty(wish.cols, wish.rows, {
    output: (bytes) => events.output(bytes),
    ended() {
      hasEnded = true;
      tell();
    },
  });
  try {
    giveTo(pty, wish.account);
    const inTerminal = ['-c', intoTerminal, 'sh', pty.path, ...asUser];
    const [program, args] = scope === null ? [launcher, inTerminal] : [scope.program, [...scope.args, ...inTerminal]];
    const child = spawn(program, args, {
      cwd: '/',
      env: loginEnvironment(wish.account, wish.shell, readLoginFiles()),
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
        tell();
        resolve();
      });
    });
    const outcome = await beginning(child, exited, wish.calledOff, clock);
    pty.started();
    if (outcome !== null) {
      pty.close();
      return new NotBegun(outcome);
    }
    begun = true;
    return {
      session: identityOf(child.pid as number),
      scope: scope?.unit ?? null,
      resume: () => pty.resume(),
      write: (bytes) => pty.write(bytes),
      resize: (cols, rows) => pty.resize(cols, rows),
      hangUp() {
        pty.close();
        hasEnded = true;
        tell();
      },
    };
  } catch (error) {
    pty.close();
    throw error;
  }
}

/**
 * Waits until the launcher says that it is about to become the shell.
 * @returns what it said instead, if it did not
 */
function beginning(
  child: ChildProcess,
  exited: Promise<void>,
  calledOff: Promise<unknown>,
  clock: Clock,
): Promise<string | null> {
  const stdio = child.stdio as ChildProcess['stdio'] | undefined;
  // This process may open no more files: none was made, and `error` says so.
  if (stdio === undefined) return new Promise((resolve) => child.once('error', (error) => resolve(error.message)));
  const errors = stdio[2] as Readable;
  const status = stdio[3] as Readable;
  let said = '';
  errors.on('data', (piece: Buffer) => {
    if (said.length < outputCap) said += piece.toString('utf8');
  });
  return new Promise((resolve) => {
    const giveUp = (why: string) => {
      if (child.pid !== undefined) killProcessGroup(child.pid);
      settle(why);
    };
    const callOffs = [clock.after(beginLimitMs, () => giveUp(`it took longer than ${beginLimitMs / 1000} s`))];
    let isSettled = false;
    calledOff.then(() => {
      if (!isSettled) callOffs.push(clock.after(calledOffMs, () => giveUp('it was closed before it was open')));
    });
    const settle = (outcome: string | null) => {
      isSettled = true;
      for (const callOff of callOffs) callOff();
      errors.destroy();
      status.destroy();
      resolve(outcome);
    };
    for (const stream of [errors, status]) stream.on('error', () => {});
    child.once('error', (error) => settle(error.message));
    status.once('data', () => settle(null));
    // Its last words may still be in the pipe when it is gone.
    exited.then(() => (errors.closed ? settle(said) : errors.once('close', () => settle(said))));
  });
}

/**
 * The user's own, and closed to others but for the group of terminals, where there is one that it can be given to.
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
    // Only root may, and not in every container.
  }
  try {
    pty.giveTo(uid, gid, 0o600);
  } catch (error) {
    // The kernel has made it this process's own.
    if (uid !== process.geteuid?.()) throw error;
  }
}

/** The group that may write into terminals, as `write` and `wall` do. */
function terminalGroup(): number | null {
  const gid = /^tty:[^:]*:(\d+):/m.exec(readText('/etc/group') ?? '')?.[1];
  return gid === undefined ? null : Number(gid);
}

/**
 * What goes before a command so that it runs as this account, with its groups and none else.
 * @throws HostFailure
 */
async function becoming(account: LoginAccount, clock: Clock): Promise<string[]> {
  const own = ownAccount();
  if (account.uid === own.uid) return [];
  if (process.geteuid?.() !== 0)
    throw new HostFailure(
      `the agent runs as ${own.name} and cannot start a shell as ${account.name}; run it as root, or take remote_terminal.user out of its configuration`,
    );
  const setpriv = pathOfProgram('setpriv');
  // The one of busybox knows no groups.
  if (setpriv !== null && !realpathSync(setpriv).endsWith('/busybox')) {
    const groups = (await groupsOf(account, clock)).join(',');
    return [setpriv, `--reuid=${account.uid}`, `--regid=${account.gid}`, `--groups=${groups}`, '--inh-caps=-all', '--'];
  }
  const runuser = pathOfProgram('runuser');
  if (runuser !== null) return [runuser, '-u', account.name, '--'];
  throw new HostFailure(
    `a shell as ${account.name} needs setpriv or runuser of util-linux, and neither is on this machine; install util-linux, or take remote_terminal.user out of the agent's configuration`,
  );
}

/**
 * By its name: of two accounts with one number, setpriv by itself would take the groups of the first.
 * @throws HostFailure
 */
async function groupsOf({ name, gid }: LoginAccount, clock: Clock): Promise<string[]> {
  const command = { program: 'getent', args: ['initgroups', '--', name], timeLimit: 10_000, outputCap: 1024 * 1024 };
  const { exitCode, stdout, stderr } = await runCommand(command, clock);
  const [of, ...others] = stdout.trim().split(/\s+/);
  if (exitCode === 0 && of === name && others.every((group) => /^\d+$/.test(group))) return [`${gid}`, ...others];
  throw new HostFailure(
    `the groups of ${name} cannot be found: ${stderr.trim().slice(0, 300) || `getent ended with ${exitCode}`}`,
  );
}

/** Shells that people may choose on this machine, as `chsh` has it. */
export function listedShells(): string[] {
  const text = readText('/etc/shells');
  // What the C library takes for granted where there is no such file.
  if (text === null) return ['/bin/sh', '/bin/csh'];
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith('/'));
}
