import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AgentMessage, decodeTerminalFrame, limits } from '@muster/protocol/wire';
import { systemClock } from '../../../../lib/src/clock.ts';
import { OpenTerminals } from '../../host/pty/open-terminals.ts';
import type { TerminalSettings } from '../shell-choice.ts';
import { type TerminalLink, Terminals } from '../terminals.ts';

type TerminalReport = Extract<AgentMessage, { channel: number }>;

const textLimit = 100_000;
const sessionId = '0'.repeat(26);
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * The orchestrator's side of a link with terminals, in this process. Acknowledges or withholds output, and respects the
 * input window.
 */
export class TestLink {
  readonly terminals: Terminals;
  readonly link: TerminalLink;
  readonly messages: TerminalReport[] = [];
  readonly logged: { message: string; fields: Record<string, unknown> }[] = [];
  settings: TerminalSettings = {
    enabled: true,
    shell: '/bin/sh',
    allow_operator_shell_override: true,
    max_sessions: 10,
    user: '',
  };
  /** The timers of the terminals. */
  after = systemClock.after;
  /** Directory for the records of open terminals. */
  readonly directory = mkdtempSync(join(tmpdir(), 'muster-terminals-'));
  #last = 0;
  #changed: (() => void)[] = [];
  readonly #shells = new Map<number, TestShell>();

  constructor() {
    const note = (fields: object, message: string) => void this.logged.push({ message, fields: { ...fields } });
    this.terminals = new Terminals({
      clock: { ...systemClock, after: (ms, action) => this.after(ms, action) },
      log: { ...quiet, info: note, warn: note, error: note },
      settings: () => this.settings,
      open: new OpenTerminals(this.directory),
    });
    this.link = this.terminals.attach({
      send: (message) => {
        if (!('channel' in message)) throw new Error(`${message.type} is not a terminal message`);
        this.messages.push(message);
        this.#shells.get(message.channel)?.hear(message);
        this.#change();
      },
      sendFrame: (frame) => {
        const decoded = decodeTerminalFrame(frame);
        if (decoded === null) throw new Error('not a terminal frame');
        this.#shells.get(decoded.channel)?.see(decoded.bytes);
        this.#change();
      },
      hasSpace: () => true,
    });
  }

  /** Closes all terminals on the link. Resolves when all their processes have exited. */
  async end(): Promise<void> {
    await this.terminals.stop('the test ends');
    rmSync(this.directory, { recursive: true });
  }

  /** Opens a terminal and waits for the response. */
  async open(options: { shell?: string | null; cols?: number; rows?: number } = {}): Promise<TestShell> {
    const { shell = null, cols = 80, rows = 24 } = options;
    const channel = ++this.#last;
    const opened = new TestShell(this, channel);
    this.#shells.set(channel, opened);
    this.link.receive({ type: 'terminal_open', channel, session_id: sessionId, cols, rows, shell, operator: 'ann' });
    await this.until(`an answer for channel ${channel}`, () => opened.answer !== null);
    return opened;
  }

  /** Waits until a condition is true. Checks it after each message and every 20 ms. */
  async until(what: string, condition: () => boolean, limitMs = 15_000): Promise<void> {
    const deadline = performance.now() + limitMs;
    while (!condition()) {
      if (performance.now() > deadline)
        throw new Error(`timeout while waiting for ${what}; messages: ${JSON.stringify(this.messages)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 20);
        this.#changed.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  #change(): void {
    const waiting = this.#changed;
    this.#changed = [];
    for (const resolve of waiting) resolve();
  }
}

export class TestShell {
  readonly channel: number;
  answer: TerminalReport | null = null;
  exit: Extract<AgentMessage, { type: 'terminal_exited' }> | null = null;
  /** Total number of bytes of received output. */
  shownBytes = 0;
  /** Whether output is acknowledged immediately. */
  isTaking = true;
  /** Output since the last `run`, at most `textLimit` characters. */
  text = '';
  onBytes: (bytes: Uint8Array) => void = () => {};
  readonly frames: number[] = [];
  #untaken = 0;
  #window = limits.terminalInputWindowBytes;
  readonly #link: TestLink;
  readonly #decoder = new TextDecoder();

  constructor(link: TestLink, channel: number) {
    this.#link = link;
    this.channel = channel;
  }

  hear(message: TerminalReport): void {
    if (message.type === 'terminal_credit') this.#window += message.bytes;
    else if (message.type === 'terminal_exited') this.exit = message;
    else this.answer = message;
  }

  see(bytes: Uint8Array): void {
    if (this.exit !== null) throw new Error('output arrived after the end was reported');
    this.shownBytes += bytes.length;
    this.frames.push(bytes.length);
    if (this.text.length < textLimit) this.text += this.#decoder.decode(bytes, { stream: true });
    this.onBytes(bytes);
    this.#untaken += bytes.length;
    if (this.#untaken > limits.terminalOutputWindowBytes) throw new Error('the output exceeds the window');
    if (this.isTaking) this.take();
  }

  /** Sends credit for output. */
  take(bytes = this.#untaken): void {
    if (bytes === 0) return;
    this.#untaken -= bytes;
    if (!this.#link.link.receive({ type: 'terminal_credit', channel: this.channel, bytes }))
      throw new Error('the credit was refused');
  }

  /** Sends input in frames that fit into the window. */
  async type(typed: string | Uint8Array): Promise<void> {
    let rest = Buffer.from(typed);
    while (rest.length > 0 && this.exit === null) {
      await this.#link.until('room in the window', () => this.#window > 0 || this.exit !== null, 60_000);
      const piece = rest.subarray(0, Math.min(this.#window, limits.terminalFrameBytes));
      if (piece.length === 0) return;
      this.#window -= piece.length;
      if (!this.#link.link.type(this.channel, piece)) throw new Error('the input was refused');
      rest = rest.subarray(piece.length);
    }
  }

  async shows(what: string | RegExp, limitMs?: number): Promise<void> {
    const isShown = () => (typeof what === 'string' ? this.text.includes(what) : what.test(this.text));
    await this.#link.until(`${what} in ${JSON.stringify(this.text.slice(-2000))}`, isShown, limitMs);
  }

  /** Runs a line and waits until it finishes. @returns the output, including the echoed line */
  async run(line: string): Promise<string> {
    this.text = '';
    // The marker appears only in the output, because the echoed line contains it in a different form.
    await this.type(`${line}; echo __END$((40+2))\r`);
    await this.shows('__END42');
    return this.text;
  }

  async ended(): Promise<{ code: number | null; signal: string | null }> {
    await this.#link.until('its end', () => this.exit !== null, 60_000);
    return { code: this.exit!.exit_code, signal: this.exit!.signal };
  }

  close(): void {
    this.#link.link.receive({ type: 'terminal_close', channel: this.channel, reason: 'the test closes the terminal' });
  }
}
