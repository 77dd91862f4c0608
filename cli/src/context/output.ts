import type { Environment } from '../directories.ts';
import { toJson } from '../text/sanitize.ts';
import { type Colors, colorsFor, columnsOf, duration, hasColor, type Style } from '../text/style.ts';
import { type Column, renderTable } from '../text/table.ts';
import { wrapMessage } from '../text/width.ts';
import { createLiveBlock, type LiveBlock } from './live-block.ts';
import type { Sink } from './sink.ts';

export interface OutputOptions {
  stdout: Sink;
  stderr: Sink;
  env: Environment;
  json: boolean;
  verbose: boolean;
  /** Whether to suppress notes. */
  quiet?: boolean;
  /** Unix seconds. */
  now: () => number;
}

interface Progress {
  /** Whether the progress line is shown: false in a pipe or a CI job. */
  readonly isSeen: boolean;
  update(text: string): void;
  end(): void;
}

/** A command's output: data on standard output, everything else on standard error. */
export interface Output {
  readonly json: boolean;
  readonly verbose: boolean;
  readonly style: Style;
  /** Style of standard error. */
  readonly noteColor: Colors;
  /** Prints data as text, with a newline. Silent with `--json`. */
  print(text: string): void;
  /** Prints data unchanged, for example the content of a module. */
  raw(text: string): void;
  /** Prints the result as JSON, for `--json`. @returns undefined, which a verb can return */
  data(value: unknown): undefined;
  /** Prints additional information. Silent with `--json` and `--quiet`. @returns undefined, which a verb can return */
  note(text: string): undefined;
  /** Prints a warning, even with `--json`. */
  warn(text: string): void;
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void;
  /** Shows a progress line on a terminal, after one second. */
  progress(text: string): Progress;
  /** Returns lines on standard error that can be redrawn. They are drawn only on a terminal outside CI. */
  live(): LiveBlock;
  /**
   * Clears and pauses all drawing while a question is on the screen.
   * @returns a function that resumes drawing
   */
  pauseDrawing(): () => void;
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

export function createOutput({ stdout, stderr, env, json, verbose, quiet = false, now }: OutputOptions): Output {
  const noteColor = colorsFor(hasColor(stderr.isTTY === true, env));
  const style: Style = {
    color: colorsFor(hasColor(stdout.isTTY === true, env)),
    get width() {
      return columnsOf(stdout, env);
    },
    get now() {
      return now();
    },
    verbose,
  };
  let pauseCount = 0;
  const drawings: { clear(): void }[] = [];
  const line = (sink: Sink, text: string) => sink.write(text.endsWith('\n') ? text : `${text}\n`);
  return {
    json,
    verbose,
    style,
    noteColor,
    print: (text) => {
      if (!json) line(stdout, text);
    },
    raw: (text) => void stdout.write(text),
    data: (value) => void line(stdout, toJson(value)),
    note: (text) => {
      if (!json && !quiet) line(stderr, wrapMessage(text, columnsOf(stderr, env)));
    },
    warn: (text) => void line(stderr, wrapMessage(`${noteColor.yellow('warning:')} ${text}`, columnsOf(stderr, env))),
    table: (columns, rows) => void line(stdout, renderTable(columns, rows, style)),
    progress: (text) => {
      const progress = startProgress(stderr, noteColor, env, json || quiet, text, () => pauseCount > 0);
      drawings.push(progress);
      return progress;
    },
    live: () => {
      const isSeen = stderr.isTTY === true && !json && !quiet && env.TERM !== 'dumb' && !env.CI;
      const block = createLiveBlock(stderr, isSeen, () => pauseCount > 0);
      if (isSeen) drawings.push(block);
      return block;
    },
    pauseDrawing: () => {
      pauseCount++;
      for (const drawing of drawings) drawing.clear();
      return () => pauseCount--;
    },
  };
}

function startProgress(
  stderr: Sink,
  color: Colors,
  env: Environment,
  silent: boolean,
  first: string,
  isPaused: () => boolean,
): Progress & { clear(): void } {
  if (stderr.isTTY !== true || silent || env.TERM === 'dumb')
    return { isSeen: false, update: () => {}, end: () => {}, clear: () => {} };
  let text = first;
  let frame = 0;
  let shown = false;
  const started = performance.now();
  const clear = () => {
    if (shown) stderr.write('\r\u001b[2K');
    shown = false;
  };
  const draw = () => {
    if (isPaused()) return;
    const seconds = Math.floor((performance.now() - started) / 1000);
    const textWidth = Math.max(20, (stderr.columns ?? 80) - 12);
    stderr.write(
      `\r\u001b[2K${color.cyan(frames[frame++ % frames.length] ?? '')} ${text.slice(0, textWidth)} ${color.dim(duration(seconds))}`,
    );
    shown = true;
  };
  let ticker: NodeJS.Timeout | undefined;
  const wait = setTimeout(() => {
    draw();
    ticker = setInterval(draw, 100);
    ticker.unref();
  }, 1000);
  wait.unref();
  return {
    isSeen: true,
    update: (next) => {
      text = next;
    },
    end: () => {
      clearTimeout(wait);
      clearInterval(ticker);
      clear();
    },
    clear,
  };
}
