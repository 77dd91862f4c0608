import { OutputClosed } from '../src/exit.ts';
import type { EndSignal, LocalTerminal, Size } from '../src/terminal/local-terminal.ts';

/** A terminal or pipe that a test controls. */
export interface ControlledTerminal {
  terminal: LocalTerminal;
  /** Returns the text that was written and accepted. */
  shown(): string;
  /** Messages for the operator. */
  said: string[];
  type(bytes: string | Uint8Array): void;
  endInput(): void;
  signal(name: EndSignal): void;
  resize(size: Size): void;
  /** Reports whether reading is paused. */
  isPaused(): boolean;
  isClosed(): boolean;
  /** Blocks writes until `take` is called. */
  blockWrites(): void;
  take(): void;
  /** Closes the reading side of the output. */
  hangUp(): void;
  /** Returns the number of written bytes that have not been accepted yet. */
  untaken(): number;
}

export function controlTerminal(kind: 'terminal' | 'pipe', first: Size = { cols: 80, rows: 24 }): ControlledTerminal {
  let size = first;
  let listeners: { bytes(bytes: Uint8Array): void; end(): void } | null = null;
  /** Events that occurred before the program started reading. */
  const early: (() => void)[] = [];
  let onResize = () => {};
  let onSignal: (signal: EndSignal) => void = () => {};
  let closingText = () => '';
  const state = { paused: false, closed: false, held: false, gone: false };
  const shown: Uint8Array[] = [];
  const waiting: { bytes: Uint8Array; done: () => void }[] = [];
  const said: string[] = [];
  const take = () => {
    state.held = false;
    for (const { bytes, done } of waiting.splice(0)) {
      shown.push(bytes);
      done();
    }
  };
  const whenRead = (act: () => void) => {
    if (listeners === null) early.push(act);
    else act();
  };
  const isTerminal = kind === 'terminal';
  return {
    terminal: {
      hasKeys: isTerminal,
      hasScreen: isTerminal,
      size: () => (isTerminal ? size : null),
      onResize: (listener) => (onResize = listener),
      read: (given) => {
        listeners = given;
        for (const each of early.splice(0)) each();
      },
      pause: () => (state.paused = true),
      resume: () => (state.paused = false),
      write: async (bytes) => {
        if (state.gone) throw new OutputClosed();
        if (state.held) await new Promise<void>((done) => waiting.push({ bytes, done }));
        else shown.push(bytes);
      },
      say: async (line) => void said.push(line),
      onSignal: (listener) => (onSignal = listener),
      beforeExit: (text) => (closingText = text),
      close: () => {
        if (state.closed) return;
        state.closed = true;
        shown.push(Buffer.from(closingText()));
      },
    },
    shown: () => Buffer.concat(shown).toString('utf8'),
    said,
    type: (bytes) => whenRead(() => listeners?.bytes(Buffer.from(bytes as string))),
    endInput: () => whenRead(() => listeners?.end()),
    signal: (name) => onSignal(name),
    resize: (next) => {
      size = next;
      onResize();
    },
    isPaused: () => state.paused,
    isClosed: () => state.closed,
    blockWrites: () => {
      state.held = true;
    },
    take,
    hangUp: () => {
      state.gone = true;
    },
    untaken: () => waiting.reduce((sum, { bytes }) => sum + bytes.length, 0),
  };
}
