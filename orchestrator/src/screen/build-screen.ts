import serialize from '@xterm/addon-serialize';
import headless, { type Terminal } from '@xterm/headless';
import { TerminalModes } from '../domain/terminals/terminal-modes.ts';
import { CastReplay } from '../store/cast.ts';

/** The screen that a part of a transcript ends with, as bytes that make another terminal look the same. */

export interface ScreenJob {
  readonly cols: number;
  readonly rows: number;
  /** What is to be shown before. */
  readonly opening: string;
  /** Whole lines of a transcript. */
  readonly lines: Uint8Array;
}

/** Lines above the screen that are kept with it. */
const scrollback = 500;
const mostBytes = 4 * 1024 * 1024;
/** So often a character may be repeated by one sequence: more than a screen has room for is asked for by nobody. */
const mostRepeats = 4096;

/**
 * What the terminal that is shown the screen may have on is switched off first, and its screen cleared; what it has
 * above that stays.
 */
const cleared = '\x1b[?1049l\x1b[!p\x1b[?9;1000;1002;1003;1004;1005;1006;2004l\x1b[0 q\x1b[m\x1b[H\x1b[2J';

/** @returns null when it is too large to be shown */
export async function buildScreen({ cols, rows, opening, lines }: ScreenJob): Promise<Uint8Array | null> {
  const terminal = new headless.Terminal({ cols, rows, scrollback, allowProposedApi: true, logLevel: 'off' });
  const serializer = new serialize.SerializeAddon();
  terminal.loadAddon(serializer as unknown as Parameters<Terminal['loadAddon']>[0]);
  limitRepeats(terminal);
  const modes = new TerminalModes();
  const show = (bytes: Uint8Array) => {
    modes.follow(bytes);
    return new Promise<void>((resolve) => terminal.write(bytes, resolve));
  };
  await show(Buffer.from(opening));
  for (const part of partsOf(lines)) {
    if (part instanceof Uint8Array) await show(part);
    else {
      terminal.resize(part.cols, part.rows);
      modes.resized();
    }
  }
  const { cursorX, cursorY } = terminal.buffer.active;
  // The text leaves it a column off where its last row is full, and where switching a mode has moved it.
  const cursor = cursorX === terminal.cols && !modes.movesCursor ? null : { row: cursorY + 1, column: cursorX + 1 };
  // The alternate screen would be filled with the ground that is set when it is entered.
  const written = serializer.serialize({ scrollback }).replace('\x1b[?1049h', '\x1b[m\x1b[?1049h');
  // By no columns it means not at all; a terminal takes that for one.
  const text = written.replaceAll('\x1b[0C', '').replaceAll('\x1b[0D', '');
  const screen = Buffer.from(cleared + text + modes.closing(cursor));
  return screen.length > mostBytes ? null : screen;
}

/** Bytes that were shown one after the other come as one. */
function* partsOf(lines: Uint8Array): Generator<Uint8Array | { readonly cols: number; readonly rows: number }> {
  const replay = new CastReplay();
  let together: Uint8Array[] = [];
  const text = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength).toString('utf8');
  for (const part of [...text.split('\n').flatMap((line) => replay.take(line)), ...replay.end()]) {
    if (part instanceof Uint8Array) together.push(part);
    else {
      yield Buffer.concat(together);
      together = [];
      yield part;
    }
  }
  yield Buffer.concat(together);
}

/** A few bytes can ask for gigabytes otherwise. */
function limitRepeats(terminal: Terminal): void {
  terminal.parser.registerCsiHandler({ final: 'b' }, ([times]) => {
    const { active } = terminal.buffer;
    const before = active.getLine(active.baseY + active.cursorY)?.getCell(Math.max(0, active.cursorX - 1));
    return Number(times) > mostRepeats || (before?.getChars().length ?? 0) > 16;
  });
}
