import type { AppliedMigration } from '../migrate.ts';
import type { StoredTranscript } from '../transcripts/transcript-rows.ts';

/** Interfaces for moving the rows of all tables from one database to another. */

export type TransferType = 'text' | 'integer' | 'number' | 'bytes';

export interface TransferColumn {
  readonly name: string;
  readonly type: TransferType;
}

export interface TransferTable {
  readonly name: string;
  readonly columns: readonly TransferColumn[];
  /**
   * Columns by which rows are sorted, so that both databases return the same order: the primary key, or all columns.
   */
  readonly key: readonly string[];
  /** Tables whose rows must be inserted before the rows of this table. */
  readonly parents: readonly string[];
  /** The column with an auto-incrementing counter; null if there is none. */
  readonly counter: string | null;
}

/** The values of a row, in column order. Binary values are base64-encoded. */
export type TransferRow = readonly (string | number | null)[];

/** A database that no other process uses, opened to read all its rows. */
export interface TransferSource {
  /** Location of the database, without the password, for use in messages. */
  readonly location: string;
  /** Returns the applied migrations, oldest first; none if the database is empty. */
  applied(): Promise<readonly AppliedMigration[]>;
  /** Returns every table except the migration records; parents come before their children. */
  tables(): Promise<readonly TransferTable[]>;
  /** Iterates over batches of all rows, in key order. */
  rows(table: TransferTable): AsyncIterable<readonly TransferRow[]>;
  /**
   * Returns the last number that the table's counter generated; null if there is no counter, or if it has not generated
   * a number.
   */
  counted(table: TransferTable): Promise<number | null>;
  /** Closes the database. An import target discards uncommitted data. */
  close(): Promise<void>;
}

/** The state of a database at one point in time, even if other processes write to it. */
export interface Snapshot extends TransferSource {
  /**
   * Iterates over samples in no particular order. Each row has the node ID, the time, and the measures in schema order.
   */
  samples(): AsyncIterable<readonly TransferRow[]>;
  /** Iterates over the transcripts in the database; none with SQLite, which stores them in files. */
  transcripts(): AsyncIterable<StoredTranscript>;
}

/** An empty database that is filled in one transaction. */
export interface TransferTarget extends TransferSource {
  /**
   * Begins the transaction, and creates the schema of the given version without rows.
   * @throws TransferRefused unless the database is empty
   */
  begin(version: number): Promise<void>;
  insert(table: TransferTable, rows: readonly TransferRow[]): Promise<void>;
  setCounted(table: TransferTable, last: number): Promise<void>;
  /** Commits all data durably, and migrates the schema to the newest version. */
  commit(): Promise<void>;
}

/** An export or import was refused, and nothing was changed. The message is for operators. */
export class TransferRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TransferRefused';
  }
}

/** Sorts tables so that parents come before their children. Otherwise sorts by name. */
export function parentsFirst(tables: readonly TransferTable[]): TransferTable[] {
  const sorted: TransferTable[] = [];
  const left = new Map([...tables].sort((a, b) => (a.name < b.name ? -1 : 1)).map((table) => [table.name, table]));
  while (left.size > 0) {
    const free = [...left.values()].filter(({ name, parents }) =>
      parents.every((parent) => parent === name || !left.has(parent)),
    );
    if (free.length === 0) throw new Error(`tables refer to each other in a cycle: ${[...left.keys()].join(', ')}`);
    for (const table of free) {
      sorted.push(table);
      left.delete(table.name);
    }
  }
  return sorted;
}
