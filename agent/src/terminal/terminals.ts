import type { OrchestratorMessage, TerminalRefusal } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { LoginShell } from '../host/accounts/login-shell.ts';
import { HostFailure } from '../host/failure.ts';
import type { OpenTerminals } from '../host/pty/open-terminals.ts';
import { Alarm } from './alarm.ts';
import { PutAway } from './put-away.ts';
import { chooseShell, type TerminalSettings } from './shell-choice.ts';
import { type Outlet, Terminal } from './terminal.ts';

type Message<Type extends OrchestratorMessage['type']> = Extract<OrchestratorMessage, { type: Type }>;
export type TerminalMessage =
  | Message<'terminal_open'>
  | Message<'terminal_resize'>
  | Message<'terminal_close'>
  | Message<'terminal_credit'>;

/** The terminals of one link. */
export interface TerminalLink {
  /** @returns false when the other end may not say that */
  receive(message: TerminalMessage): boolean;
  /** @returns false when that is more than may come */
  type(channel: number, bytes: Uint8Array): boolean;
  /** The network has taken what was sent. */
  roomAgain(): void;
  /** The link is gone, and with it every terminal. */
  end(reason: string): void;
}

export interface TerminalsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** As they are now. */
  settings(): TerminalSettings;
  readonly open: OpenTerminals;
  /** One is over, and its memory is not needed any more. */
  ended?(): void;
}

/** A terminal that counts, until nothing of it is left. */
interface Entry {
  readonly wish: Message<'terminal_open'>;
  readonly terminal: Terminal;
  readonly outlet: Outlet;
  refuse(code: TerminalRefusal, message: string): void;
  /** Its opening was told, and its end was not. */
  isOpen: boolean;
  /** Why it is being ended; null: it is not. */
  ending: string | null;
  readonly hungUp: PromiseWithResolvers<void>;
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

const notKilled = 'processes of a terminal that ended could not be killed';
/** After what is left of a shell was killed, so long is waited for word of its end. Milliseconds. */
const lastWaitMs = 3_000;

/** Every terminal of this agent, whichever link it was opened over. */
export class Terminals {
  readonly #options: TerminalsOptions;
  readonly #alarm: Alarm<Terminal>;
  readonly #putAway: PutAway;
  readonly #entries = new Set<Entry>();
  readonly #runs = new Set<Promise<void>>();
  #isStopping = false;

  constructor(options: TerminalsOptions) {
    this.#options = options;
    this.#alarm = new Alarm(options.clock);
    this.#putAway = new PutAway(options.clock);
  }

  /** Ends what an earlier process of this agent, which was killed, has left of its terminals. */
  start(): void {
    const { open, log } = this.#options;
    for (const terminal of open.left()) {
      const { pid } = terminal.session;
      log.warn({ pid }, 'the agent was killed with a terminal open: what is left in that is ended');
      this.#putAway.end(terminal.session).then((left) => {
        open.remove(terminal);
        if (left > 0) log.warn({ pid, left }, notKilled);
      });
    }
  }

  /** How many there are. */
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
          // Counted up, so that what is late for one terminal never reaches another.
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
      roomAgain: () => {
        // Each in its turn is the first, so that none fills all of the room for good.
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

  /** Where there are to be none any more, those that are open end. */
  settingsChanged(): void {
    if (this.#options.settings().enabled) return;
    for (const entry of this.#entries) this.#hangUp(entry, 'terminals are turned off in the configuration');
  }

  /** Ends all; resolves when nothing of them runs any more. */
  async stop(reason: string): Promise<void> {
    this.#isStopping = true;
    for (const entry of this.#entries) this.#hangUp(entry, reason);
    await Promise.all(this.#runs);
  }

  #open(wish: Message<'terminal_open'>, outlet: Outlet, channels: Map<number, Entry>): void {
    const { clock, log, settings } = this.#options;
    const { channel, operator, session_id } = wish;
    const refuse = (code: TerminalRefusal, message: string) => {
      log.warn({ session_id, operator, code, reason: message }, 'a terminal was refused');
      outlet.send({ type: 'terminal_refused', channel, code, message: message.slice(0, 1024) });
    };
    const { enabled, max_sessions } = settings();
    if (!enabled || this.#isStopping) {
      refuse('disabled', 'this agent offers no terminals: remote_terminal.enabled in its configuration');
      return;
    }
    if (this.#entries.size >= max_sessions) {
      refuse('limit', `${max_sessions} terminals are open on this agent: remote_terminal.max_sessions`);
      return;
    }
    const terminal = new Terminal({
      channel,
      outlet,
      now: () => clock.monotonic(),
      wakeAt: (sleeper, time) => this.#alarm.set(sleeper, time),
    });
    const entry: Entry = {
      wish,
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
        if (!(error instanceof HostFailure)) log.error({ session_id, error }, 'a bug: a terminal failed');
        if (entry.isOpen) outlet.send({ type: 'terminal_exited', channel, exit_code: null, signal: null });
        else refuse('failed', error instanceof Error ? error.message : String(error));
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

  /** From its opening until nothing of it is left. */
  async #run(entry: Entry): Promise<void> {
    const { clock, log, open } = this.#options;
    const { wish, terminal, outlet, refuse } = entry;
    const { channel, session_id, operator } = wish;
    // Nothing of this is loaded before the first terminal.
    const [{ startLoginShell, listedShells }, { accountOf, ownAccount }, { isProgram }] = await Promise.all([
      import('../host/accounts/login-shell.ts'),
      import('../host/accounts/login-account.ts'),
      import('../host/processes/find-program.ts'),
    ]);
    const settings = this.#options.settings();
    const account = settings.user === '' ? ownAccount() : await accountOf(settings.user, clock);
    const choice = chooseShell(wish.shell, account.shell, settings, { isProgram, listedShells });
    if ('code' in choice) {
      refuse(choice.code, choice.message);
      return;
    }
    const exited = Promise.withResolvers<Exit>();
    const { cols, rows } = wish;
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
    this.#note(shell);
    entry.isOpen = true;
    outlet.send({ type: 'terminal_opened', channel, ...as });
    log.info({ session_id, operator, ...as }, 'terminal opened');
    const shown = exited.promise.then(() => new Promise<void>((done) => terminal.finish(done)));
    // It may have been closed while it was being opened.
    if (entry.ending === null) terminal.begin(shell);
    await Promise.race([shown, entry.hungUp.promise]);

    let away = Promise.resolve(0);
    if (entry.ending !== null) {
      terminal.end();
      shell.hangUp();
      away = this.#putAway.end(shell.session);
    }
    const unknown = away.then(() => this.#pause(lastWaitMs)).then((): Exit => ({ code: null, signal: null }));
    const { code, signal } = await Promise.race([exited.promise, unknown]);
    entry.isOpen = false;
    // Of an agent that stops the end of the link tells: those terminals did not end, they were interrupted.
    if (!this.#isStopping) outlet.send({ type: 'terminal_exited', channel, exit_code: code, signal });
    const seconds = Math.round((clock.monotonic() - openedAt) / 1000);
    const reason = entry.ending ?? 'the shell ended';
    log.info({ session_id, operator, ...as, seconds, exit_code: code, signal, reason }, 'terminal ended');
    const left = await away;
    open.remove(shell);
    if (left > 0) log.warn({ session_id, operator, left }, notKilled);
  }

  /** A disk that takes nothing is no reason to be without a terminal on that machine. */
  #note(shell: LoginShell): void {
    try {
      this.#options.open.add(shell);
    } catch (error) {
      this.#options.log.warn({ error }, 'what is left of a terminal will not be ended if this agent is killed');
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve));
  }
}
