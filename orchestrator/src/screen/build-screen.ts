import serialize from '@xterm/addon-serialize';
import headless, { type Terminal } from '@xterm/headless';
import { TerminalModes } from '../domain/terminals/terminal-modes.ts';
import { CastReplay } from '../store/cast.ts';

/**
 * Builds the screen as it is at the end of a section of a transcript. The result is a byte sequence that reproduces the
 * screen in another terminal.
 */

export interface ScreenJob {
  readonly cols: number;
  readonly rows: number;
  /** Control sequences to write before the transcript. */
  readonly opening: string;
  /** Complete lines of a transcript. */
  readonly lines: Uint8Array;
}

/** Maximum number of scrollback lines to include. */
const scrollback = 500;
const maxBytes = 4 * 1024 * 1024;
/** Maximum number of repetitions of a character in one control sequence. */
const maxRepeats = 4096;

/** Resets the modes of the terminal that shows the screen. Clears the screen but not the scrollback. */
const clearScreen = '\x1b[?1049l\x1b[!p\x1b[?9;1000;1002;1003;1004;1005;1006;2004l\x1b[0 q\x1b[m\x1b[H\x1b[2J';

/** @returns null if the screen exceeds the maximum size */
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
  // Restores the cursor, because the text alone leaves it one column off after a full last row or a mode change that
  // moves it.
  const cursor = cursorX === terminal.cols && !modes.movesCursor ? null : { row: cursorY + 1, column: cursorX + 1 };
  // Resets the attributes first, because entering the alternate screen fills it with the current background color.
  const written = serializer.serialize({ scrollback }).replace('\x1b[?1049h', '\x1b[m\x1b[?1049h');
  // The serializer writes cursor movements of 0 columns, which terminals treat as movements of 1 column.
  const text = written.replaceAll('\x1b[0C', '').replaceAll('\x1b[0D', '');
  const screen = Buffer.from(clearScreen + text + modes.closing(cursor));
  return screen.length > maxBytes ? null : screen;
}

/** Splits a transcript into outputs and resizes, and joins adjacent outputs. */
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

/** Limits control sequences that repeat a character. Otherwise, a few bytes could allocate gigabytes. */
function limitRepeats(terminal: Terminal): void {
  terminal.parser.registerCsiHandler({ final: 'b' }, ([times]) => {
    const { active } = terminal.buffer;
    const before = active.getLine(active.baseY + active.cursorY)?.getCell(Math.max(0, active.cursorX - 1));
    return Number(times) > maxRepeats || (before?.getChars().length ?? 0) > 16;
  });
}
