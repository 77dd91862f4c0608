import { createHash } from 'node:crypto';
import { TransferRefused, type TransferRow } from './transfer-table.ts';

/**
 * The format of an export, version 1: UTF-8, one JSON value per line.
 *
 *     {"muster_export":1,"schema_version":8,"muster_version":"0.1.0","created_at":"…"}
 *     {"table":"agents","columns":["node_id",…]}
 *     ["3f8c…",…]                                   a row with its values in the order of the columns
 *     {"end":"agents","rows":1,"counted":null,"sha256":"…"}
 *     …
 *     {"trailer":{"tables":21,"rows":1,"sha256":"…"}}
 *
 * The `sha256` of a table covers the lines of its rows, which are in key order. The `sha256` of the trailer covers all
 * bytes before it. `counted` is the last number that the table's counter generated.
 */

export const formatVersion = 1;

export interface Header {
  readonly muster_export: number;
  readonly schema_version: number;
  readonly muster_version: string;
  readonly created_at: string;
}
export interface TableStart {
  readonly table: string;
  readonly columns: readonly string[];
}
export interface TableEnd {
  readonly end: string;
  readonly rows: number;
  readonly counted: number | null;
  readonly sha256: string;
}
export interface Trailer {
  readonly trailer: { readonly tables: number; readonly rows: number; readonly sha256: string };
}
export type Line = Header | TableStart | TableEnd | Trailer | TransferRow;

const lineOf = (value: Line): string => `${JSON.stringify(value)}\n`;

/** Maximum number of bytes per line. A row may contain the whole text of a module or the payload of an operation. */
const maxLineBytes = 256 * 1024 * 1024;
const newline = 0x0a;

export class RowDigest {
  readonly #hash = createHash('sha256');
  rows = 0;

  add(rows: readonly TransferRow[]): void {
    this.#hash.update(rows.map(lineOf).join(''));
    this.rows += rows.length;
  }

  /** Must be called once, after the last row. */
  end(): string {
    return this.#hash.digest('hex');
  }
}

/** Writes the lines of an export and computes the digest for its trailer. */
export class ExportWriter {
  readonly #hash = createHash('sha256');
  #tables = 0;
  #rows = 0;

  text(lines: readonly Exclude<Line, Trailer>[]): string {
    const text = lines.map(lineOf).join('');
    this.#hash.update(text);
    return text;
  }

  ended(end: TableEnd): string {
    this.#tables++;
    this.#rows += end.rows;
    return this.text([end]);
  }

  trailer(): string {
    return lineOf({ trailer: { tables: this.#tables, rows: this.#rows, sha256: this.#hash.digest('hex') } });
  }
}

/**
 * Reads the lines of an export, and verifies that the export is complete.
 * @throws TransferRefused if the text is truncated, modified, or not an export
 */
export async function* readExport(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Exclude<Line, Trailer>> {
  const hash = createHash('sha256');
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let count = 0;
  let tables = 0;
  let rows = 0;
  let complete = false;
  for await (const line of linesOf(bytes)) {
    count++;
    if (complete) throw new TransferRefused(`line ${count}: unexpected data after the end of the export`);
    let value: Line;
    try {
      value = JSON.parse(decoder.decode(line)) as Line;
    } catch {
      throw new TransferRefused(
        count === 1
          ? 'this is not a Muster export'
          : `line ${count} cannot be parsed: the export is damaged or truncated`,
      );
    }
    if (count === 1) refuseHeader(value);
    if (typeof value === 'object' && value !== null && 'trailer' in value) {
      const { trailer } = value;
      if (trailer?.sha256 !== hash.digest('hex') || trailer.tables !== tables || trailer.rows !== rows)
        throw new TransferRefused('the export was modified: its digest or its counts do not match');
      complete = true;
      continue;
    }
    hash.update(line).update('\n');
    if (Array.isArray(value)) rows++;
    else if ('end' in value) tables++;
    yield value;
  }
  if (!complete) throw new TransferRefused(`the export ends after line ${count} without its trailer: it is truncated`);
}

function refuseHeader(value: Line): void {
  const { muster_export: version } = (value ?? {}) as Partial<Header>;
  if (typeof version !== 'number') throw new TransferRefused('this is not a Muster export');
  if (version !== formatVersion)
    throw new TransferRefused(
      `this export has format version ${version}; this release of Muster reads version ${formatVersion}`,
    );
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of bytes) {
    let rest = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    for (let at = rest.indexOf(newline); at !== -1; at = rest.indexOf(newline)) {
      yield Buffer.concat([...pieces, rest.subarray(0, at)]);
      pieces = [];
      length = 0;
      rest = rest.subarray(at + 1);
    }
    if (rest.length === 0) continue;
    length += rest.length;
    if (length > maxLineBytes) throw new TransferRefused(`a line exceeds ${maxLineBytes} bytes: the export is damaged`);
    pieces.push(rest);
  }
  // A last line without a newline is truncated, even if it is valid JSON.
  if (pieces.length > 0) throw new TransferRefused('the last line has no line break: the export is truncated');
}
