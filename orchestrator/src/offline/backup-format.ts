/**
 * The format of a backup, version 1: a gzipped tar, inside age if it is encrypted. Its entries, in this order:
 *
 *     muster-backup.json          header: {"muster_backup":1,"id":…,"created_at":…,"schema_version":…,…}
 *     keys/identity.key …         files of the data directory besides the database
 *     config/orchestrator.yml …   the configuration file, and certificates that it refers to
 *     terminals/ID.cast           transcripts, up to their length at the time of the backup
 *     metrics/00000001 …          samples, one JSON array per line: [node_id, collected_at, …]
 *     rows/00000001 …             an export of the database (transfer-format.ts), in chunks to concatenate
 *     manifest.json               {"entries":[{"name":…,"size":…,"sha256":…},…],…} of all entries before it
 *
 * So `age -d FILE | tar xzO --wildcards 'rows/*' | muster import -` works without `muster restore`.
 */

export const backupVersion = 1;
export const headerName = 'muster-backup.json';
export const manifestName = 'manifest.json';

export type BackupPart = 'metrics' | 'transcripts';

export interface BackupHeader {
  readonly muster_backup: number;
  /** Random ID of the backup, which a restored database contains. */
  readonly id: string;
  readonly created_at: string;
  readonly muster_version: string;
  readonly schema_version: number;
  /** The oldest schema version whose releases can use the database. Backups from earlier releases do not contain it. */
  readonly compatible_from?: number;
  readonly database: 'sqlite' | 'postgres';
  readonly public_key: string;
  /** Parts that the operator has excluded. */
  readonly without: readonly BackupPart[];
  /** IDs of the secrets keys that the backup contains. */
  readonly secret_keys: readonly string[];
}

export interface ManifestEntry {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

export interface Manifest {
  readonly entries: readonly ManifestEntry[];
  readonly rows: number;
  readonly samples: number;
  /** IDs of the secrets keys that the database needs but that are not in the backup. */
  readonly keys_elsewhere: readonly string[];
}

const entryPatterns: Readonly<Record<string, RegExp>> = {
  keys: /^keys\/(identity\.key|secrets\.keys|api\.key|api\.crt)$/,
  config: /^config\/(orchestrator\.yml|tls_cert\.pem|tls_key\.pem)$/,
  terminals: /^terminals\/[0-9A-HJKMNP-TV-Z]{26}\.cast$/,
  metrics: /^metrics\/\d{8}$/,
  rows: /^rows\/\d{8}$/,
};

export type EntryKind = 'header' | 'manifest' | 'keys' | 'config' | 'terminals' | 'metrics' | 'rows';

/** @returns the kind of entry that this name denotes; null if the format does not allow the name */
export function kindOf(name: string): EntryKind | null {
  if (name === headerName) return 'header';
  if (name === manifestName) return 'manifest';
  for (const [kind, pattern] of Object.entries(entryPatterns)) if (pattern.test(name)) return kind as EntryKind;
  return null;
}
