import type { OrchestratorMessage, TerminalRefusal } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import { errorMessage } from '../../../lib/src/error-message.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { LoginShell } from '../host/accounts/login-shell.ts';
import { HostFailure } from '../host/failure.ts';
import type { OpenTerminals } from '../host/pty/open-terminals.ts';
import { Alarm } from './alarm.ts';
import { SessionKiller } from './session-killer.ts';
import { chooseShell, type TerminalSettings } from './shell-choice.ts';
import { type Outlet, Terminal } from './terminal.ts';

type Message<Type extends OrchestratorMessage['type']> = Extract<OrchestratorMessage, { type: Type }>;
export type TerminalMessage =
  | Message<'terminal_open'>
  | Message<'terminal_resize'>
  | Message<'terminal_close'>
  | Message<'terminal_credit'>;

export interface TerminalLink {
  /** Handles a message. @returns false if the message is a protocol violation */
  receive(message: TerminalMessage): boolean;
  /** Handles input. @returns false if the input exceeds the window or the channel is unknown */
  type(channel: number, bytes: Uint8Array): boolean;
  /** Continues output when the send buffer has room again. */
  resume(): void;
  end(reason: string): void;
}

export interface TerminalsOptions {
  readonly clock: Clock;
  readonly log: Log;
  settings(): TerminalSettings;
  readonly open: OpenTerminals;
  /** Called when a terminal has been closed and has released its memory. */
  ended?(): void;
}

/** A terminal that counts toward the maximum until all its processes have exited. */
interface Entry {
  readonly request: Message<'terminal_open'>;
  readonly terminal: Terminal;
  readonly outlet: Outlet;
  refuse(code: TerminalRefusal, message: string): void;
  /** Whether the terminal was reported as open but not yet as closed. */
  isOpen: boolean;
  /** Why the terminal was hung up; null if it was not. */
  ending: string | null;
  readonly hungUp: PromiseWithResolvers<void>;
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

const notKilled = 'failed to kill processes of an ended terminal';
/** Milliseconds to wait for the exit event of a shell after its processes were killed. */
const exitTimeoutMs = 3_000;

/** All terminals of this agent, across links. */
export class Terminals {
  readonly #options: TerminalsOptions;
  readonly #alarm: Alarm<Terminal>;
  readonly #killer: SessionKiller;
  readonly #entries = new Set<Entry>();
  readonly #runs = new Set<Promise<void>>();
  #isStopping = false;

  constructor(options: TerminalsOptions) {
    this.#options = options;
    this.#alarm = new Alarm(options.clock);
    this.#killer = new SessionKiller(options.clock);
  }

  /** Kills terminal processes that a killed agent process left behind. */
  start(): void {
    const { open, log } = this.#options;
    for (const terminal of open.left()) {
      const { pid } = terminal.session;
      log.warn({ pid }, 'found terminal processes left behind by an earlier agent process; killing them');
      this.#killer.end(terminal.session).then((left) => {
        open.remove(terminal);
        if (left > 0) log.warn({ pid, left }, notKilled);
      });
    }
  }

  /** Number of terminals, including those whose processes have not exited yet. */
  get open(): number {
    return this.#entries.size;
  }

  attach(outlet: Outlet): TerminalLink {
    const channels = new Map<number, Entry>();
    let last = 0;
    let turn = 0;
    return {
      receive: (message) => {
        if (message.type === 'terminal_open') {
          // Channel numbers must increase, so that a late message never reaches a different terminal.
          if (message.channel <= last) return false;
          last = message.channel;
          this.#open(message, outlet, channels);
          return true;
        }
        const entry = channels.get(message.channel);
        if (entry === undefined) return message.channel <= last;
        if (message.type === 'terminal_credit') return entry.terminal.credit(message.bytes);
        if (message.type === 'terminal_resize') entry.terminal.resize(message.cols, message.rows);
        else this.#hangUp(entry, message.reason);
        return true;
      },
      type: (channel, bytes) => channels.get(channel)?.terminal.type(bytes) ?? channel <= last,
      resume: () => {
        // Starts with a different terminal each time, so that no terminal always takes all the space in the send
        // buffer.
        const entries = [...channels.values()];
        turn = (turn + 1) % Math.max(1, entries.length);
        for (const { terminal } of [...entries.slice(turn), ...entries.slice(0, turn)]) terminal.wake();
      },
      end: (reason) => {
        for (const entry of channels.values()) this.#hangUp(entry, reason);
        channels.clear();
      },
    };
  }

  /** Closes all terminals if the settings disable them. */
  settingsChanged(): void {
    if (this.#options.settings().enabled) return;
    for (const entry of this.#entries) this.#hangUp(entry, 'terminals were disabled in the configuration');
  }

  /** Closes all terminals. Resolves when all their processes have exited. */
  async stop(reason: string): Promise<void> {
    this.#isStopping = true;
    for (const entry of this.#entries) this.#hangUp(entry, reason);
    await Promise.all(this.#runs);
  }

  #open(request: Message<'terminal_open'>, outlet: Outlet, channels: Map<number, Entry>): void {
    const { clock, log, settings } = this.#options;
    const { channel, operator, session_id } = request;
    const refuse = (code: TerminalRefusal, message: string) => {
      log.warn({ session_id, operator, code, reason: message }, 'refused a terminal session');
      outlet.send({ type: 'terminal_refused', channel, code, message: message.slice(0, 1024) });
    };
    const { enabled, max_sessions } = settings();
    if (!enabled || this.#isStopping) {
      refuse('disabled', 'this agent offers no terminals; see remote_terminal.enabled in its configuration');
      return;
    }
    if (this.#entries.size >= max_sessions) {
      refuse(
        'limit',
        `${max_sessions} terminals are open on this agent, the maximum set in remote_terminal.max_sessions`,
      );
      return;
    }
    const terminal = new Terminal({
      channel,
      outlet,
      now: () => clock.monotonic(),
      wakeAt: (sleeper, time) => this.#alarm.set(sleeper, time),
    });
    const entry: Entry = {
      request,
      terminal,
      outlet,
      refuse,
      isOpen: false,
      ending: null,
      hungUp: Promise.withResolvers(),
    };
    this.#entries.add(entry);
    channels.set(channel, entry);
    const run = this.#run(entry)
      .catch((error: unknown) => {
        if (!(error instanceof HostFailure)) log.error({ session_id, error }, 'bug: failed to run a terminal');
        if (entry.isOpen) outlet.send({ type: 'terminal_exited', channel, exit_code: null, signal: null });
        else refuse('failed', errorMessage(error));
      })
      .finally(() => {
        terminal.end();
        this.#entries.delete(entry);
        channels.delete(channel);
        this.#runs.delete(run);
        this.#options.ended?.();
      });
    this.#runs.add(run);
  }

  #hangUp(entry: Entry, reason: string): void {
    entry.ending ??= reason;
    entry.hungUp.resolve();
  }

  /** Opens and runs a terminal. Resolves when all its processes have exited. */
  async #run(entry: Entry): Promise<void> {
    const { clock, log, open } = this.#options;
    const { request, terminal, outlet, refuse } = entry;
    const { channel, session_id, operator } = request;
    // Loaded on demand, because most agents never open a terminal.
    const [{ startLoginShell, listedShells }, { accountOf, ownAccount }, { isProgram }] = await Promise.all([
      import('../host/accounts/login-shell.ts'),
      import('../host/accounts/login-account.ts'),
      import('../host/processes/find-program.ts'),
    ]);
    const settings = this.#options.settings();
    const account = settings.user === '' ? ownAccount() : await accountOf(settings.user, clock);
    const choice = chooseShell(request.shell, account.shell, settings, { isProgram, listedShells });
    if ('code' in choice) {
      refuse(choice.code, choice.message);
      return;
    }
    const exited = Promise.withResolvers<Exit>();
    const { cols, rows } = request;
    const as = { user: account.name, shell: choice.shell };
    const shell = await startLoginShell(
      {
        ...{ account, shell: choice.shell, cols, rows },
        cancelled: entry.hungUp.promise,
        warn: (message) => log.warn({}, message),
      },
      { output: (bytes) => terminal.show(bytes), exited: (code, signal) => exited.resolve({ code, signal }) },
      clock,
    );
    const openedAt = clock.monotonic();
    this.#record(shell);
    entry.isOpen = true;
    outlet.send({ type: 'terminal_opened', channel, ...as });
    log.info({ session_id, operator, ...as }, 'terminal opened');
    const shown = exited.promise.then(() => new Promise<void>((done) => terminal.finish(done)));
    // The terminal may have been closed while the shell was starting.
    if (entry.ending === null) terminal.begin(shell);
    await Promise.race([shown, entry.hungUp.promise]);

    let killed = Promise.resolve(0);
    if (entry.ending !== null) {
      terminal.end();
      shell.hangUp();
      killed = this.#killer.end(shell.session);
    }
    const unknown = killed.then(() => this.#pause(exitTimeoutMs)).then((): Exit => ({ code: null, signal: null }));
    const { code, signal } = await Promise.race([exited.promise, unknown]);
    entry.isOpen = false;
    // When the agent stops, closing the link reports these terminals as interrupted instead of closed.
    if (!this.#isStopping) outlet.send({ type: 'terminal_exited', channel, exit_code: code, signal });
    const seconds = Math.round((clock.monotonic() - openedAt) / 1000);
    const reason = entry.ending ?? 'the shell ended';
    log.info({ session_id, operator, ...as, seconds, exit_code: code, signal, reason }, 'terminal closed');
    const left = await killed;
    open.remove(shell);
    if (left > 0) log.warn({ session_id, operator, left }, notKilled);
  }

  /**
   * Records the shell for a later cleanup. Ignores a failure, because operators need a terminal when the disk is full.
   */
  #record(shell: LoginShell): void {
    try {
      this.#options.open.add(shell);
    } catch (error) {
      this.#options.log.warn(
        { error },
        'failed to record an open terminal; its processes will keep running if this agent is killed',
      );
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve));
  }
}
