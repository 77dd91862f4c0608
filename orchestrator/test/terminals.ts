import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/protocol';
import { afterAll, afterEach } from 'vitest';
import type { Clock } from '../../lib/src/clock.ts';
import type { TerminalRules } from '../src/domain/terminals/live-terminal.ts';
import type { TerminalParts } from '../src/domain/terminals/open-terminal.ts';
import type { Shell, ShellEvents, ShellOptions, Shells } from '../src/domain/terminals/shells.ts';
import type { TerminalClient, TerminalNotice } from '../src/domain/terminals/terminal-client.ts';
import { createTerminals } from '../src/domain/terminals/terminals.ts';
import type { Recording, Transcripts } from '../src/store/transcripts/transcripts.ts';
import { openFileTranscripts } from '../src/store/transcripts/transcripts-files.ts';
import type { Domain } from './domain.ts';
import { scratchDirectory } from './scratch.ts';

/** A shell that the test controls and that records its input. The test sends output through `events`. */
export class MemoryShell implements Shell {
  readonly program = '/bin/bash';
  readonly user = 'root';
  readonly options: ShellOptions;
  readonly events: ShellEvents;
  typed = '';
  sizes: string[] = [];
  /** Number of bytes released to the shell's flow-control window. */
  given = 0;
  closed: string | null = null;
  /** The value that `write` returns. */
  roomy = true;

  constructor(options: ShellOptions, events: ShellEvents) {
    this.options = options;
    this.events = events;
  }

  write(bytes: Uint8Array): boolean {
    this.typed += Buffer.from(bytes).toString();
    return this.roomy;
  }

  resize(cols: number, rows: number): void {
    this.sizes.push(`${cols}x${rows}`);
  }

  taken(bytes: number): void {
    this.given += bytes;
  }

  close(reason: string): void {
    this.closed ??= reason;
  }

  /** Sends shell output. */
  says(text: string | Uint8Array): void {
    this.events.output(Buffer.from(text as string));
  }
}

/** In-memory shells. Every agent offers terminals. */
export class MemoryShells implements Shells {
  readonly opened: MemoryShell[] = [];
  /** A function to run while a shell is being started. */
  starting: (shell: MemoryShell) => Promise<void> = async () => {};

  async open(options: ShellOptions, events: ShellEvents): Promise<MemoryShell> {
    const shell = new MemoryShell(options, events);
    await this.starting(shell);
    this.opened.push(shell);
    return shell;
  }

  get last(): MemoryShell {
    const shell = this.opened.at(-1);
    if (!shell) throw new Error('no shell was opened');
    return shell;
  }
}

/** A client whose network accepts all data immediately, unless `stuck` is set. */
export class MemoryClient implements TerminalClient {
  /** Received output, as text, and received notices, in order. */
  readonly seen: (string | TerminalNotice)[] = [];
  readonly bytes: Uint8Array[] = [];
  paused = false;
  over: 'closed' | 'cut' | null = null;
  /** Whether the simulated network accepts no data. */
  stuck = false;
  readonly #untaken: (() => void)[] = [];

  show(bytes: Uint8Array, sent: () => void): void {
    const copy = Uint8Array.from(bytes);
    this.bytes.push(copy);
    const text = Buffer.from(copy).toString();
    if (typeof this.seen.at(-1) === 'string') this.seen.push(`${this.seen.pop()}${text}`);
    else this.seen.push(text);
    if (this.stuck) this.#untaken.push(sent);
    else sent();
  }

  notify(notice: TerminalNotice): void {
    this.seen.push(notice);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  close(): void {
    this.over ??= 'closed';
  }

  cut(): void {
    this.over ??= 'cut';
  }

  /** Lets the network accept the queued frames. */
  take(): void {
    for (const sent of this.#untaken.splice(0)) sent();
  }

  /** Returns all received output. */
  get shown(): string {
    return Buffer.concat(this.bytes).toString();
  }

  /** Returns the code of the last error notice, if any. */
  get code(): string | null {
    const last = this.seen.findLast((one) => typeof one === 'object' && one.type === 'error');
    return typeof last === 'object' && last.type === 'error' ? last.code : null;
  }
}

export const ticketOf = ({ ws_url }: { ws_url: string }): string =>
  new URL(ws_url, 'http://x').searchParams.get('ticket') ?? '';

export const defaultRules: TerminalRules = {
  reattachSecs: 60,
  idleLimitSecs: 43_200,
  transcriptLimit: 268_435_456,
  recordInput: false,
};

export const refusingShells: Shells = {
  open: async () => {
    throw new MusterError('terminal_disabled', 'the agent does not offer terminals');
  },
};

/**
 * Call this while defining a suite.
 * @returns a function that opens terminals with a domain, and transcripts in a new directory
 */
export function terminalsFixture() {
  const root = scratchDirectory('muster-terminals-');
  const recordings: Recording[] = [];
  let count = 0;
  // Closes the files of terminals that are still open, as after a test that leaves sessions to the next process.
  afterEach(() => Promise.allSettled(recordings.splice(0).map((recording) => recording.finish())));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const openTranscripts = async (directory: string, clock: Clock): Promise<Transcripts> => {
    const transcripts = await openFileTranscripts(directory, clock);
    const { create } = transcripts;
    transcripts.create = async (...session) => {
      const recording = await create(...session);
      recordings.push(recording);
      return recording;
    };
    return transcripts;
  };
  return async ({ context, clock }: Domain, given: Partial<TerminalParts> & { directory?: string } = {}) => {
    const directory = given.directory ?? join(root, String(++count));
    const transcripts = given.transcripts ?? (await openTranscripts(directory, clock));
    const parts: TerminalParts = {
      clock,
      transcripts,
      shells: new MemoryShells(),
      recentScreen: async () => Buffer.from('<screen>'),
      rules: defaultRules,
      wire: null,
      ...given,
    };
    return { directory, transcripts, terminals: createTerminals(context, parts) };
  };
}
