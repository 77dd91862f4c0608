import { compatibleFromOf, versionOf } from '../migrate.ts';
import { migrations } from '../migrations/index.ts';
import { ExportWriter, formatVersion, type Header, RowDigest, readExport, type TableEnd } from './transfer-format.ts';
import {
  TransferRefused,
  type TransferRow,
  type TransferSource,
  type TransferTable,
  type TransferTarget,
} from './transfer-table.ts';
import { transcriptTables } from './transfer-transcripts.ts';

export interface TableReport {
  readonly table: string;
  readonly rows: number;
  readonly sha256: string;
}

export interface TransferReport {
  readonly schema_version: number;
  readonly rows: number;
  readonly tables: readonly TableReport[];
}

export interface TransferProgress {
  readonly onTable?: ((table: TableReport) => void) | undefined;
}

/** Maximum number of rows per insert. */
const insertRows = 500;
const insertCharacters = 4_000_000;

/**
 * Exports the whole database, one batch of rows at a time. A newer schema is exported unchanged if this release can use
 * it. Only a release that supports the schema can import it.
 * @param write writes text, and resolves when it can accept more
 * @throws TransferRefused if the database is empty, or newer than this release and not compatible with it
 */
export async function exportDatabase(
  source: TransferSource,
  write: (text: string) => Promise<void>,
  about: { musterVersion: string; now: Date } & TransferProgress,
): Promise<TransferReport> {
  const applied = await source.applied();
  const version = versionOf(applied);
  if (version === 0) throw new TransferRefused(`${source.location} is empty: there is nothing to export`);
  refuseNewer(version, compatibleFromOf(applied), source.location);
  const writer = new ExportWriter();
  await write(
    writer.text([
      {
        muster_export: formatVersion,
        schema_version: version,
        muster_version: about.musterVersion,
        created_at: about.now.toISOString(),
      },
    ]),
  );
  const tables: TableReport[] = [];
  for (const table of await source.tables()) {
    // Databases without transcripts have the same export, whether or not they have these tables.
    if (transcriptTables.has(table.name) && (await isEmpty(source, table))) continue;
    await write(writer.text([{ table: table.name, columns: table.columns.map(({ name }) => name) }]));
    const digest = new RowDigest();
    for await (const rows of source.rows(table)) {
      digest.add(rows);
      await write(writer.text(rows));
    }
    const { rows } = digest;
    const sha256 = digest.end();
    await write(writer.ended({ end: table.name, rows, counted: await source.counted(table), sha256 }));
    tables.push({ table: table.name, rows, sha256 });
    about.onTable?.({ table: table.name, rows, sha256 });
  }
  await write(writer.trailer());
  return { schema_version: version, rows: sum(tables), tables };
}

async function isEmpty(source: TransferSource, table: TransferTable): Promise<boolean> {
  for await (const rows of source.rows(table)) if (rows.length > 0) return false;
  return true;
}

/**
 * Fills an empty database from an export, either completely or not at all. Verifies the imported rows before the
 * commit.
 * @throws TransferRefused if the export is incomplete or does not match its schema, or if the database is not empty
 */
export async function importDatabase(
  bytes: AsyncIterable<Uint8Array>,
  target: TransferTarget,
  about: TransferProgress = {},
): Promise<TransferReport> {
  const report = await fillDatabase(bytes, target, about);
  await target.commit();
  return report;
}

/** Works like {@link importDatabase}, but does not commit. */
export async function fillDatabase(
  bytes: AsyncIterable<Uint8Array>,
  target: TransferTarget,
  about: TransferProgress = {},
): Promise<TransferReport> {
  const done = new Map<string, { table: TransferTable; end: TableEnd }>();
  let tables: readonly TransferTable[] = [];
  let version = 0;
  let open: { table: TransferTable; digest: RowDigest } | null = null;
  let batch: TransferRow[] = [];
  let characters = 0;
  const flush = async () => {
    if (open && batch.length > 0) {
      open.digest.add(batch);
      await target.insert(open.table, batch);
    }
    batch = [];
    characters = 0;
  };
  for await (const line of readExport(bytes)) {
    if (Array.isArray(line)) {
      const row = line as TransferRow;
      if (!open || row.length !== open.table.columns.length || !row.every(isValue))
        throw new TransferRefused('a row is not in a table or does not match its columns: the export is damaged');
      batch.push(row);
      for (const value of row) characters += typeof value === 'string' ? value.length : 8;
      if (batch.length >= insertRows || characters > insertCharacters) await flush();
    } else if ('muster_export' in line) {
      version = importableVersion(line);
      await target.begin(version);
      tables = await target.tables();
    } else if ('table' in line) {
      const table = tables.find(({ name }) => name === line.table);
      if (!table || open || done.has(line.table))
        throw new TransferRefused(
          `the table ${line.table} is unknown, repeated, or within another table: the export is damaged`,
        );
      open = { table: reordered(table, line.columns), digest: new RowDigest() };
    } else if ('end' in line) {
      await flush();
      if (!open || open.table.name !== line.end || open.digest.rows !== line.rows || open.digest.end() !== line.sha256)
        throw new TransferRefused(`the rows of ${line.end} differ from the exported rows: the export is damaged`);
      if (line.counted !== null) await target.setCounted(open.table, line.counted);
      done.set(line.end, { table: open.table, end: line });
      open = null;
    }
  }
  const forgotten = tables.map(({ name }) => name).filter((name) => !done.has(name) && !transcriptTables.has(name));
  if (open || forgotten.length > 0)
    throw new TransferRefused(`the export lacks tables of its schema: ${forgotten.join(', ')}`);
  const report = await compared([...done.values()], target, about);
  return { schema_version: version, rows: sum(report), tables: report };
}

/** Reads all rows back, and compares their digests with those of the export. */
async function compared(
  tables: Iterable<{ table: TransferTable; end: TableEnd }>,
  target: TransferTarget,
  about: TransferProgress,
): Promise<TableReport[]> {
  const report: TableReport[] = [];
  for (const { table, end } of tables) {
    const digest = new RowDigest();
    for await (const rows of target.rows(table)) digest.add(rows);
    const { rows } = digest;
    const sha256 = digest.end();
    const counted = await target.counted(table);
    if (rows !== end.rows || sha256 !== end.sha256 || counted !== end.counted)
      throw new TransferRefused(
        `${table.name} in ${target.location} differs from the export (${rows} of ${end.rows} rows); nothing was kept`,
      );
    report.push({ table: table.name, rows, sha256 });
    about.onTable?.({ table: table.name, rows, sha256 });
  }
  return report;
}

const isValue = (value: unknown): boolean =>
  value === null || typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value));

const sum = (tables: readonly TableReport[]): number => tables.reduce((total, { rows }) => total + rows, 0);

function importableVersion({ schema_version: version }: Header): number {
  if (!Number.isInteger(version) || version < 1) throw new TransferRefused('the export has no schema version');
  refuseNewer(version, version, 'the export');
  return version;
}

/** @param oldest the oldest schema version whose releases can use this schema */
function refuseNewer(version: number, oldest: number, what: string): void {
  if (oldest > migrations.length)
    throw new TransferRefused(
      `${what} has schema version ${version}, but this release of Muster supports versions up to ${migrations.length}: use a release that supports version ${version}, such as the one that upgraded the database`,
    );
}

function reordered(table: TransferTable, columns: readonly string[]): TransferTable {
  const found = columns.map((name) => table.columns.find((column) => column.name === name));
  if (found.length !== table.columns.length || new Set(found).size !== found.length || found.includes(undefined))
    throw new TransferRefused(`the columns of ${table.name} in the export differ from its schema`);
  return { ...table, columns: found as TransferTable['columns'] };
}
