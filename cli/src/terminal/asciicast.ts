import { CliError, exits } from '../exit.ts';

/**
 * Reads asciicast v2: a header line, followed by one event per line. The orchestrator writes recordings, but this code
 * validates them anyway.
 */

interface CastHeader {
  readonly kind: 'header';
  readonly cols: number;
  readonly rows: number;
}

export type CastEvent =
  | { readonly kind: 'output'; readonly at: number; readonly text: string }
  | { readonly kind: 'resize'; readonly at: number; readonly cols: number; readonly rows: number };

/** Maximum line length in characters. Events are shorter, because the orchestrator writes chunks of 64 KiB. */
const longestLine = 2 * 1024 * 1024;

const damaged = (line: number, what: string): CliError =>
  new CliError(
    exits.failed,
    'recording_damaged',
    `the recording is damaged: line ${line} ${what}`,
    'To save it unchanged: muster terminal download SESSION --format asciicast -o FILE',
  );

/**
 * Parses a recording as it arrives. Skips all events except output and resizes.
 * @returns the header first, then events in ascending order of time
 */
export async function* readCast(source: AsyncIterable<Uint8Array>): AsyncGenerator<CastHeader | CastEvent> {
  let number = 0;
  let last = 0;
  for await (const { line, isComplete } of linesOf(source)) {
    number++;
    if (number === 1) {
      yield headerOf(line);
      continue;
    }
    if (line.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      // The last line is incomplete if the recording was cut off.
      if (!isComplete) return;
      throw damaged(number, 'is not JSON');
    }
    if (!Array.isArray(value) || typeof value[0] !== 'number' || typeof value[1] !== 'string')
      throw damaged(number, 'is not an event');
    const [time, kind, data] = value as [number, string, unknown];
    last = Math.max(last, Number.isFinite(time) ? time : last);
    if (kind === 'o' && typeof data === 'string') yield { kind: 'output', at: last, text: data };
    const size = kind === 'r' && typeof data === 'string' ? /^(\d{1,4})x(\d{1,4})$/.exec(data) : null;
    if (size) yield { kind: 'resize', at: last, cols: Number(size[1]), rows: Number(size[2]) };
  }
  if (number === 0) throw damaged(1, 'is missing');
}

function headerOf(line: string): CastHeader {
  let header: { version?: unknown; width?: unknown; height?: unknown } | null = null;
  try {
    header = JSON.parse(line);
  } catch {
    // The error below reports the faulty line.
  }
  if (header === null || typeof header !== 'object') throw damaged(1, 'is not the header of an asciicast');
  const { version, width, height } = header;
  if (version !== 2) throw damaged(1, 'is not the header of an asciicast of version 2');
  return { kind: 'header', cols: sizeOr(width, 80), rows: sizeOr(height, 24) };
}

const sizeOr = (size: unknown, otherwise: number): number =>
  Number.isInteger(size) && (size as number) > 0 && (size as number) < 10_000 ? (size as number) : otherwise;

/** Yields lines without line feeds. Only the last line may be incomplete. */
async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<{ line: string; isComplete: boolean }> {
  let buffered: Buffer[] = [];
  let length = 0;
  let number = 1;
  const take = (last: Buffer): string => {
    const line = Buffer.concat([...buffered, last]).toString('utf8');
    buffered = [];
    length = 0;
    number++;
    return line;
  };
  for await (const bytes of source) {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let from = 0;
    for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, from)) {
      yield { line: take(piece.subarray(from, end)), isComplete: true };
      from = end + 1;
    }
    const rest = piece.subarray(from);
    length += rest.length;
    if (length > longestLine) throw damaged(number, 'is too long');
    if (rest.length > 0) buffered.push(Buffer.from(rest));
  }
  if (length > 0) yield { line: take(Buffer.alloc(0)), isComplete: false };
}
