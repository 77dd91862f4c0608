import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { migrations } from '../store/migrations/index.ts';
import { readExport } from '../store/transfer/transfer-format.ts';
import { TransferRefused } from '../store/transfer/transfer-table.ts';
import {
  type BackupHeader,
  backupVersion,
  type EntryKind,
  kindOf,
  type Manifest,
  type ManifestEntry,
} from './backup-format.ts';
import { ChainCheck } from './chain-check.ts';
import { decrypting, isArmored, isEncrypted, LockError, maxMagicLength, type Openers } from './encryption.ts';
import { BadArchive, readTar, type TarEntry } from './tar.ts';

/**
 * Reads a backup. Every entry must be of a known kind, must be in the correct order, and must match its digest in the
 * manifest.
 */

export interface BackupVisitor {
  /** Called first. If it throws, the read stops. */
  header(header: BackupHeader): Promise<void>;
  /** Called for each file from the data directory, and for the configuration files. */
  file(kind: 'keys' | 'config' | 'terminals', name: string, content: AsyncIterable<Buffer>): Promise<void>;
  /** Called once with all samples, one per line. */
  samples(content: AsyncIterable<Buffer>): Promise<void>;
  /** Called once with the whole database export. */
  rows(content: AsyncIterable<Buffer>): Promise<void>;
}

type Entry = TarEntry & { kind: EntryKind; content: AsyncIterable<Buffer> };

const maxTextBytes = 64 * 1024 * 1024;
const order: readonly EntryKind[] = ['header', 'keys', 'config', 'terminals', 'metrics', 'rows', 'manifest'];

/**
 * Reads a whole backup.
 * @throws TransferRefused if the file is not a backup, is damaged or truncated, or is from a newer release; LockError
 *   if it cannot be decrypted
 */
export async function readBackup(
  bytes: AsyncIterable<Uint8Array>,
  openers: Openers,
  visitor: BackupVisitor,
): Promise<{ header: BackupHeader; manifest: Manifest }> {
  try {
    return await readEntries(await decoded(bytes, openers), visitor);
  } catch (error) {
    if (error instanceof TransferRefused || error instanceof LockError) throw error;
    if (error instanceof BadArchive) throw new TransferRefused(`the backup cannot be used: ${error.message}`);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith('Z_'))
      throw new TransferRefused(`the backup cannot be used: it is damaged or truncated (${message})`);
    if (
      code === undefined &&
      /ChaCha|poly1305|tag|stream|stanza|truncated|chunk|STREAM|invalid (header|version)/i.test(message)
    )
      throw new TransferRefused(`the backup cannot be used: the encrypted data is damaged or truncated (${message})`);
    throw error;
  }
}

/** Decrypts and decompresses a backup. */
async function decoded(bytes: AsyncIterable<Uint8Array>, openers: Openers): Promise<AsyncIterable<Uint8Array>> {
  const pieces = bytes[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < maxMagicLength) {
    const { done, value } = await pieces.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  if (isArmored(head)) throw new TransferRefused('the backup is armored: decode it with `age -d` or base64 first');
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield head;
    for (;;) {
      const { done, value } = await pieces.next();
      if (done) return;
      yield value;
    }
  }
  let packed: AsyncIterable<Uint8Array> = whole();
  if (isEncrypted(head)) {
    const web = Readable.toWeb(Readable.from(packed)) as ReadableStream<Uint8Array>;
    packed = (await decrypting(web, openers)) as AsyncIterable<Uint8Array>;
  } else if (head[0] !== 0x1f || head[1] !== 0x8b) throw new TransferRefused('this is not a Muster backup');
  const gunzip = createGunzip();
  pipeline(Readable.from(packed), gunzip, () => {});
  return gunzip;
}

async function readEntries(
  archive: AsyncIterable<Uint8Array>,
  visitor: BackupVisitor,
): Promise<{ header: BackupHeader; manifest: Manifest }> {
  const seen: ManifestEntry[] = [];
  const entries = knownEntries(archive, seen);
  const first = await entries.next();
  if (first.done || first.value.kind !== 'header') throw new TransferRefused('this is not a Muster backup');
  const header = readHeader(await textOf(first.value));
  await visitor.header(header);
  let next = await entries.next();
  async function* joined(kind: EntryKind): AsyncGenerator<Buffer> {
    while (!next.done && next.value.kind === kind) {
      yield* next.value.content;
      next = await entries.next();
    }
  }
  for (const kind of order.slice(1)) {
    if (kind === 'metrics') await visitor.samples(joined(kind));
    else if (kind === 'rows') {
      if (next.done || next.value.kind !== 'rows')
        throw new TransferRefused('the backup has no rows: it is damaged or truncated');
      await visitor.rows(joined(kind));
      // Reads the rest of the content, because the digest covers it.
      for await (const _ of joined(kind));
    } else if (kind === 'keys' || kind === 'config' || kind === 'terminals')
      while (!next.done && next.value.kind === kind) {
        await visitor.file(kind, next.value.name, next.value.content);
        next = await entries.next();
      }
    else if (!next.done && next.value.kind === 'manifest') {
      const before = [...seen];
      const manifest = JSON.parse(await textOf(next.value)) as Manifest;
      if (JSON.stringify(manifest.entries) !== JSON.stringify(before))
        throw new TransferRefused('the backup was modified: its digests do not match');
      if (!(await entries.next()).done) throw new TransferRefused('the backup has data after its end: it was modified');
      return { header, manifest };
    }
  }
  throw new TransferRefused(
    next.done
      ? 'the backup ends without its manifest: it is truncated'
      : `${next.value.name} is not allowed at its position in the backup`,
  );
}

/** Iterates over the entries of a backup, and records the digest of each entry after reading it. */
async function* knownEntries(archive: AsyncIterable<Uint8Array>, seen: ManifestEntry[]): AsyncGenerator<Entry> {
  for await (const { name, size, content } of readTar(archive)) {
    const kind = kindOf(name);
    if (kind === null)
      throw new TransferRefused(`the backup contains an unknown entry: ${JSON.stringify(name.slice(0, 100))}`);
    const hash = createHash('sha256');
    async function* summed(): AsyncGenerator<Buffer> {
      for await (const piece of content) {
        hash.update(piece);
        yield piece;
      }
    }
    yield { name, size, kind, content: { [Symbol.asyncIterator]: summed } };
    // Reads content that the visitor has not read.
    for await (const _ of summed());
    seen.push({ name, size, sha256: hash.digest('hex') });
  }
}

async function textOf({ name, size, content }: Entry): Promise<string> {
  if (size > maxTextBytes) throw new TransferRefused(`${name} is too large`);
  const pieces: Buffer[] = [];
  for await (const piece of content) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces).toString('utf8');
}

function readHeader(text: string): BackupHeader {
  let header: Partial<BackupHeader>;
  try {
    header = JSON.parse(text) as Partial<BackupHeader>;
  } catch {
    throw new TransferRefused('this is not a Muster backup');
  }
  if (typeof header?.muster_backup !== 'number') throw new TransferRefused('this is not a Muster backup');
  if (header.muster_backup !== backupVersion)
    throw new TransferRefused(
      `this backup has format version ${header.muster_backup}; this Muster reads version ${backupVersion}`,
    );
  if (!Number.isInteger(header.schema_version) || typeof header.id !== 'string' || !/^[0-9a-f]{32}$/.test(header.id))
    throw new TransferRefused('this is not a Muster backup');
  const whole = header as BackupHeader;
  refuseNewer(whole, whole.compatible_from ?? whole.schema_version);
  return whole;
}

/**
 * Refuses to restore a backup whose schema is newer than this release's schema, even if this release could use the
 * database.
 */
export const refuseUnrestorable = (header: BackupHeader): void => refuseNewer(header, header.schema_version);

function refuseNewer({ muster_version, schema_version }: BackupHeader, oldest: number): void {
  if (oldest > migrations.length)
    throw new TransferRefused(
      `the backup of Muster ${muster_version} has schema version ${schema_version}, but this release supports versions up to ${migrations.length}: use a release that supports version ${schema_version}`,
    );
}

export interface Verdict extends BackupHeader {
  readonly rows: number;
  readonly samples: number;
  readonly transcripts: number;
  readonly audit_events: number;
  readonly keys_elsewhere: readonly string[];
}

/**
 * Reads a whole backup, and verifies its digests and its audit log chain. Writes nothing.
 * @throws TransferRefused, LockError
 */
export async function verifyBackup(bytes: AsyncIterable<Uint8Array>, openers: Openers): Promise<Verdict> {
  const chain = new ChainCheck();
  let rows = 0;
  let samples = 0;
  let transcripts = 0;
  const { header, manifest } = await readBackup(bytes, openers, {
    header: async () => {},
    file: async (kind, _, content) => {
      if (kind === 'terminals') transcripts++;
      for await (const _piece of content);
    },
    samples: async (content) => {
      for await (const _ of linesOf(content)) samples++;
    },
    rows: async (content) => {
      for await (const line of readExport(content)) {
        chain.take(line);
        if (Array.isArray(line)) rows++;
      }
    },
  });
  if (rows !== manifest.rows || samples !== manifest.samples)
    throw new TransferRefused('the backup was modified: its counts do not match');
  return { ...header, rows, samples, transcripts, audit_events: chain.end(), keys_elsewhere: manifest.keys_elsewhere };
}

/** Splits bytes into lines without newlines. */
export async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of bytes) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    for (let at = rest.indexOf(10); at !== -1; at = rest.indexOf(10)) {
      yield rest.toString('utf8', 0, at);
      rest = rest.subarray(at + 1);
    }
    if (rest.length > 1024 * 1024) throw new TransferRefused('a line of samples is too long');
    // Copies the chunk, because it may be a view of a buffer that is reused.
    rest = Buffer.from(rest);
  }
  if (rest.length > 0) throw new TransferRefused('the samples are truncated');
}
