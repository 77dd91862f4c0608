/** A table as it stands in a database, and what moving its rows to another database takes from either of them. */

export type TransferType = 'text' | 'integer' | 'number' | 'bytes';

export interface TransferColumn {
  readonly name: string;
  readonly type: TransferType;
}

export interface TransferTable {
  readonly name: string;
  readonly columns: readonly TransferColumn[];
  /** By these its rows are put in order, the same in both databases: the primary key, or all columns. */
  readonly key: readonly string[];
  /** Tables whose rows must be there first. */
  readonly parents: readonly string[];
  /** The column that counts its rows up by itself. */
  readonly counter: string | null;
}

/** A row in the order of the columns; bytes as base64. */
export type TransferRow = readonly (string | number | null)[];

/** A database that nobody else works on, to read all of it. */
export interface TransferSource {
  /** For people: where it is, without a password. */
  readonly place: string;
  /** Of the schema; 0: the database is empty. */
  version(): Promise<number>;
  /** Every table but the record of migrations, parents before their children. */
  tables(): Promise<readonly TransferTable[]>;
  /** All rows in order of their keys, some at a time. */
  rows(table: TransferTable): AsyncIterable<readonly TransferRow[]>;
  /** The last number that the table's counter gave out; null: none yet, or no counter. */
  counted(table: TransferTable): Promise<number | null>;
  /** Lets go; what a target has not committed is gone. */
  close(): Promise<void>;
}

/** A database as it was at one moment, whoever works on it. */
export interface Snapshot extends TransferSource {
  /** Samples of machines: node id, time, and the measures in their order. In no order of their own. */
  samples(): AsyncIterable<readonly TransferRow[]>;
}

/** An empty database that is filled in one piece. */
export interface TransferTarget extends TransferSource {
  /** Makes the schema of this version, without any row, and begins. @throws TransferRefused unless nothing is there */
  begin(version: number): Promise<void>;
  insert(table: TransferTable, rows: readonly TransferRow[]): Promise<void>;
  setCounted(table: TransferTable, last: number): Promise<void>;
  /** Makes all of it durable and brings its schema to the newest version. */
  commit(): Promise<void>;
}

/** What cannot be exported or imported, and why, in words for a person. Nothing was changed. */
export class TransferRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TransferRefused';
  }
}

/** Parents before their children, else by name. */
export function inOrder(tables: readonly TransferTable[]): TransferTable[] {
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
