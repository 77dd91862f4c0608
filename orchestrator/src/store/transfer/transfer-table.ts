/** A table of a database, and the interfaces to move its rows to another database. */

export type TransferType = 'text' | 'integer' | 'number' | 'bytes';

export interface TransferColumn {
  readonly name: string;
  readonly type: TransferType;
}

export interface TransferTable {
  readonly name: string;
  readonly columns: readonly TransferColumn[];
  /** The columns that define the same row order in both databases: the primary key, or all columns. */
  readonly key: readonly string[];
  /** Tables whose rows must be inserted first. */
  readonly parents: readonly string[];
  /** The column with an automatic counter. */
  readonly counter: string | null;
}

/** A row in the order of the columns; bytes as base64. */
export type TransferRow = readonly (string | number | null)[];

/** A database, used by no other process, that is opened to read all of its rows. */
export interface TransferSource {
  /** Location of the database, for messages; contains no password. */
  readonly place: string;
  /** Schema version; 0: the database is empty. */
  version(): Promise<number>;
  /** Every table except the record of migrations, parents before their children. */
  tables(): Promise<readonly TransferTable[]>;
  /** All rows in key order, in batches. */
  rows(table: TransferTable): AsyncIterable<readonly TransferRow[]>;
  /** The last number that the table's counter produced; null: none yet, or no counter. */
  counted(table: TransferTable): Promise<number | null>;
  /** Closes the database. A target discards uncommitted data. */
  close(): Promise<void>;
}

/** A database as it was at one moment, while others may write to it. */
export interface Snapshot extends TransferSource {
  /** Samples of machines: node id, time, and the measures in schema order; the rows are unordered. */
  samples(): AsyncIterable<readonly TransferRow[]>;
}

/** An empty database that is filled in one transaction. */
export interface TransferTarget extends TransferSource {
  /**
   * Creates the schema of this version without rows, and begins. @throws TransferRefused unless the database is empty
   */
  begin(version: number): Promise<void>;
  insert(table: TransferTable, rows: readonly TransferRow[]): Promise<void>;
  setCounted(table: TransferTable, last: number): Promise<void>;
  /** Makes everything durable and migrates the schema to the newest version. */
  commit(): Promise<void>;
}

/** An export or import was refused, and nothing was changed. The message is for operators. */
export class TransferRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TransferRefused';
  }
}

/** Sorts tables: parents before their children, otherwise by name. */
export function parentsFirst(tables: readonly TransferTable[]): TransferTable[] {
  const sorted: TransferTable[] = [];
  const left = new Map([...tables].sort((a, b) => (a.name < b.name ? -1 : 1)).map((table) => [table.name, table]));
  while (left.size > 0) {
    const free = [...left.values()].filter(({ name, parents }) =>
      parents.every((parent) => parent === name || !left.has(parent)),
    );
    if (free.length === 0) throw new Error(`tables refer to each other in a circle: ${[...left.keys()].join(', ')}`);
    for (const table of free) {
      sorted.push(table);
      left.delete(table.name);
    }
  }
  return sorted;
}
