import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, expect, test, vi } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { happen, placeAll } from '../../test/audit.ts';
import { type DatabaseFixture, describeDatabases } from '../../test/databases/databases.ts';
import { oneMore } from '../../test/databases/migrations.ts';
import { newAdmin, newAgent, openDomain } from '../../test/domain.ts';
import { getOperation } from '../../test/reading.ts';
import { tokenOf } from '../../test/real-api.ts';
import { scratchDirectory } from '../../test/scratch.ts';
import { transcriptsIn } from '../../test/transcripts.ts';
import { DatabaseUrl } from '../config/database-url.ts';
import { configSchema } from '../config/schema.ts';
import { createToken, listTokens } from '../domain/agents/enrollment.ts';
import { listAudit } from '../domain/audit/audit.ts';
import { repairRestored } from '../domain/fleet/restored.ts';
import { uploadModule } from '../domain/modules/modules.ts';
import { submitOperation } from '../domain/operations/operations.ts';
import { createSecret } from '../domain/secrets/secrets.ts';
import type { Context } from '../domain/shared/context.ts';
import { createLease } from '../domain/shared/leases.ts';
import { loadIdentity } from '../identity/identity.ts';
import { migrations } from '../store/migrations/index.ts';
import { openPostgresSamples } from '../store/samples/samples-postgres.ts';
import { openSqliteSamples } from '../store/samples/samples-sqlite.ts';
import { openSqliteFile } from '../store/sqlite/sqlite-connection.ts';
import { openTranscripts } from '../store/transcripts/open-transcripts.ts';
import { inspectPostgres } from '../store/transfer/transfer-postgres.ts';
import { verifyBackup } from './backup-read.ts';
import { writeBackup } from './backup-write.ts';
import { restoreBackup } from './restore.ts';

const above = scratchDirectory('muster-backup-');
afterAll(() => rmSync(above, { recursive: true, force: true }));
let count = 0;
const folder = () => {
  const path = join(above, String(++count));
  mkdirSync(path, { mode: 0o700 });
  return path;
};

/** A migration from a release whose databases this release cannot use. */
const incompatible = { version: oneMore.version + 1, name: 'incompatible', statements: () => [] };
const repair = (context: Context) => repairRestored(context, createLease(context, 'upkeep'), async () => {});
const nobody = { passphrase: null, identities: [] };
const cast = `{"version":2}\n${'[0.1,"o","é"]\n'.repeat(100)}`;
const terminal = '01KAGZ8R3E5F6G7H8J9K0M1N2P';
const sampleAt = (collected_at: number) => ({
  collected_at,
  cpu_usage: 0.5,
  memory_total: 8e9,
  memory_used: 4e9,
  disk_total: null,
  disk_used: null,
  uptime: 7,
  load1: 0.25,
  swap_used: 0,
  net_rx_bytes: 1,
  net_tx_bytes: 2,
  processes: 3,
});

describeDatabases('backup and restore', (fixture) => {
  /** Creates an orchestrator's data directory and configuration. */
  async function createOrchestrator(at?: string) {
    const dataDir = folder();
    const where = fixture.kind === 'sqlite' ? join(dataDir, 'muster.db') : (at ?? (await fixture.newAddress()));
    const config = configSchema.parse({});
    const whole = fixture.kind === 'sqlite' ? config : { ...config, database_url: new DatabaseUrl(where) };
    const fixed: DatabaseFixture = { ...fixture, open: (options) => fixture.open({ ...options, at: where }) };
    return { dataDir, where, config: whole, fixed };
  }
  const samplesAt = ({ dataDir, where }: { dataDir: string; where: string }) =>
    fixture.kind === 'sqlite'
      ? openSqliteSamples({
          file: join(dataDir, 'metrics.db'),
          retentionSecs: 86_400,
          onFatal: (reason) => {
            throw reason;
          },
        })
      : openPostgresSamples({ url: where, retentionSecs: 86_400 });

  async function filled() {
    const spot = await createOrchestrator();
    const domain = await openDomain(spot.fixed);
    await loadIdentity(spot.dataDir);
    mkdirSync(join(spot.dataDir, 'terminals'), { mode: 0o700 });
    writeFileSync(join(spot.dataDir, 'terminals', `${terminal}.cast`), cast, { mode: 0o600 });
    const { actor, key } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    await tokenOf(domain, key);
    const content = JSON.stringify({
      name: 'm',
      supports: [{ platform: 'linux' }],
      resources: [{ resource: { 'file-unix': { path: '/etc/m', content: 'x' } } }],
    });
    await uploadModule(domain.context, actor, 'm', content);
    const operation = await submitOperation(domain.context, actor, 'web-1', {
      kind: 'apply',
      modules: ['m'],
    } as never);
    await createToken(domain.context, actor, {} as never, { agents: 'x:1', publicKey: 'ab' } as never);
    await createSecret(domain.context, actor, { name: 'db', value: 'hunter2' } as never);
    await happen(domain, 300);
    await placeAll(domain);
    const samples = await samplesAt(spot);
    await samples.add(agent.id, [sampleAt(domain.now()), sampleAt(domain.now() + 60)]);
    await samples.close();
    return { ...spot, domain, actor, agent, operation };
  }
  type Filled = Awaited<ReturnType<typeof filled>>;

  async function backupOf(
    { config, dataDir }: Pick<Filled, 'config' | 'dataDir'>,
    tell: (line: string) => unknown = () => {},
  ): Promise<Buffer> {
    const pieces: Buffer[] = [];
    const options = {
      config,
      dataDir,
      configFile: null,
      without: [],
      lock: null,
      now: () => 1_800_000_000_000,
      tell,
    };
    await writeBackup(options, async (bytes) => void pieces.push(Buffer.from(bytes)));
    return Buffer.concat(pieces);
  }
  async function* bytesOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
  }
  const restoreTo = ({ config, dataDir }: Pick<Filled, 'config' | 'dataDir'>, bytes: Buffer, force = false) =>
    restoreBackup({
      config,
      dataDir,
      bytes: bytesOf(bytes),
      openers: nobody,
      force,
      now: () => 1_800_000_100_000,
      tell: () => {},
    });

  test('restores rows, keys, transcripts, and samples as of one point in time, and ends open operations', async () => {
    const from = await filled();
    const bytes = await backupOf(from);
    // Changes made after the snapshot.
    await happen(from.domain, 50);
    const verdict = await verifyBackup(bytesOf(bytes), nobody);
    expect(verdict).toMatchObject({
      samples: 2,
      transcripts: 1,
      database: fixture.kind,
      keys_elsewhere: [from.domain.context.secretKeys.active?.id],
    });
    expect(verdict.audit_events).toBeGreaterThan(300);

    const to = await createOrchestrator();
    expect(await restoreTo(to, bytes)).toMatchObject({ samples: 2, transcripts: 1, aside: [] });
    for (const name of ['identity.key', `terminals/${terminal}.cast`])
      expect(readFileSync(join(to.dataDir, name))).toEqual(readFileSync(join(from.dataDir, name)));
    const domain = await openDomain(to.fixed);
    const before = await listAudit(domain.context, { limit: 1 });
    expect(before.events[0]?.event_type).not.toBe('system.restored');
    expect(await repair(domain.context)).toMatchObject({ id: verdict.id });
    expect(await getOperation(domain.context, from.operation)).toMatchObject({ status: 'interrupted' });
    const { items } = (await listTokens(domain.context, true, { limit: 10, offset: 0 } as never)) as unknown as {
      items: { revoked_at: number | null }[];
    };
    expect(items.map(({ revoked_at }) => revoked_at)).toEqual([expect.any(Number)]);
    const { events } = await listAudit(domain.context, { limit: 500 });
    expect(events.filter(({ summary }) => /^it happened/.test(summary))).toHaveLength(300);
    expect(events.map(({ event_type }) => event_type)).toContain('system.restored');
    expect(await repair(domain.context)).toBeNull();
    const samples = await samplesAt(to);
    expect(await samples.since(from.agent.id, 0, 10)).toEqual([
      sampleAt(from.domain.now()),
      sampleAt(from.domain.now() + 60),
    ]);
    await samples.close();
  });

  test('backs up transcripts in the database and in files that have not been moved yet', async () => {
    if (fixture.kind === 'sqlite') return;
    const from = await filled();
    const [open, ended] = ['01KAGZ8R3E5F6G7H8J9K0M1N2Q', '01KAGZ8R3E5F6G7H8J9K0M1N2R'];
    const transcripts = transcriptsIn(from.where);
    const recording = await transcripts.create(open, () => {});
    await new Promise<void>((done) => recording.append('{}\n', done));
    const other = await transcripts.create(ended, () => {});
    other.append('[1,"o","x"]\n'.repeat(200_000));
    await other.finish();
    await transcripts.pack();
    // Simulates a startup that was killed while moving a file: the transcript is in the database, and the file still
    // exists.
    await transcripts.store(terminal, [Buffer.from(cast)] as never);
    const bytes = await backupOf(from);
    await new Promise<void>((done) => recording.append('later\n', done));
    await recording.finish();
    expect(await verifyBackup(bytesOf(bytes), nobody)).toMatchObject({ transcripts: 3 });
    const to = await createOrchestrator();
    expect(await restoreTo(to, bytes)).toMatchObject({ transcripts: 3 });
    await transcripts.close();

    // The first start moves the restored files into the database.
    const location = { file: '', postgres: { url: to.where, poolSize: 1, statementTimeout: 10, replica: null } };
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const restored = await openTranscripts(location, to.dataDir, 'next', { clock: systemClock, log });
    await vi.waitFor(() => expect(readdirSync(join(to.dataDir, 'terminals'))).toEqual([]), 5_000);
    const contents = [cast, '{}\n', '[1,"o","x"]\n'.repeat(200_000)];
    for (const [n, id] of [terminal, open, ended].entries())
      expect(String(await buffer((await restored.cast(id))!)) === contents[n], id).toBe(true);
    await restored.close();
  });

  test('refuses a truncated or modified backup, and leaves no file behind', async () => {
    const from = await filled();
    const bytes = await backupOf(from);
    const to = await createOrchestrator();
    const archive = gunzipSync(bytes);
    const broken = [
      bytes.subarray(0, bytes.length - 1),
      bytes.subarray(0, bytes.length >> 1),
      ...[600, archive.indexOf('it happened 7'), archive.lastIndexOf('sha256'), archive.indexOf('"o"')].map((at) => {
        const changed = Buffer.from(archive);
        changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
        return gzipSync(changed);
      }),
    ];
    for (const [index, one] of broken.entries()) {
      await expect(verifyBackup(bytesOf(one), nobody), `${index}`).rejects.toThrow(
        /cannot be used|was modified|damaged|truncated/,
      );
      await expect(restoreTo(to, one), `${index}`).rejects.toThrow();
      expect(readdirSync(to.dataDir), `${index}`).toEqual([]);
      if (fixture.kind === 'postgres')
        expect(await inspectPostgres(to.where, 'any'), `${index}`).toEqual({ rows: false, setting: null });
    }
    await restoreTo(to, bytes);
  });

  test('keeps existing data with --force if the backup is damaged', async () => {
    const from = await filled();
    const bytes = await backupOf(from);
    const to = await createOrchestrator();
    await restoreTo(to, bytes);
    const domain = await openDomain(to.fixed);
    await repair(domain.context);
    await domain.db.close();
    const there = readdirSync(to.dataDir).sort();
    const archive = gunzipSync(bytes);
    const digit = archive.lastIndexOf('"sha256":"') + 10;
    // Changes one digit.
    archive.write(archive.toString('latin1', digit, digit + 1) === '0' ? '1' : '0', digit);
    for (const broken of [bytes.subarray(0, bytes.length - 1), gzipSync(archive)]) {
      await expect(restoreTo(to, broken, true)).rejects.toThrow('the backup');
      expect(readdirSync(to.dataDir).sort()).toEqual(there);
      const again = await openDomain(to.fixed);
      expect(await getOperation(again.context, from.operation)).toMatchObject({ status: 'interrupted' });
      await again.db.close();
    }
  });

  test('refuses a directory that is not empty, and moves its data aside with --force', async () => {
    const from = await filled();
    const bytes = await backupOf(from);
    const to = await createOrchestrator();
    await restoreTo(to, bytes);
    await expect(restoreTo(to, bytes)).rejects.toThrow('is not empty');
    const { aside } = await restoreTo(to, bytes, true);
    // The database still contains the marker of the first restore, so the second restore does not move the database
    // aside.
    expect(aside.length).toBe(1);
    expect(readdirSync(to.dataDir).filter((name) => name.startsWith('before-restore-'))).toHaveLength(1);
    const domain = await openDomain(to.fixed);
    await repair(domain.context);
    await domain.db.close();
    if (fixture.kind === 'postgres')
      expect((await restoreTo(to, bytes, true)).aside[0]).toMatch('schema muster_before_restore_');
  });

  test('backs up and exports a database with a newer compatible schema, and restores it only with a release that supports the schema', async () => {
    const from = await filled();
    await from.domain.db.close();
    const compatible = [...migrations, { ...oneMore, compatibleFrom: migrations.length }];
    await (await fixture.open({ at: from.where, migrations: compatible })).close();
    const told: string[] = [];
    const bytes = await backupOf(from, (line) => told.push(line));
    expect(told.join()).toContain(`schema version ${oneMore.version}: only releases that support this version`);
    const known = { schema_version: oneMore.version, compatible_from: migrations.length };
    expect(await verifyBackup(bytesOf(bytes), nobody)).toMatchObject({ ...known, audit_events: expect.any(Number) });
    const to = await createOrchestrator();
    await expect(restoreTo(to, bytes)).rejects.toThrow(`use a release that supports version ${oneMore.version}`);

    await (await fixture.open({ at: from.where, migrations: [...compatible, incompatible] })).close();
    await expect(backupOf(from)).rejects.toThrow(`use a release that supports version ${incompatible.version}`);
  });

  test('detects a modified audit log in a backup', async () => {
    if (fixture.kind === 'postgres') return;
    const from = await filled();
    const db = openSqliteFile(from.where);
    db.exec(`update audit_events set summary = 'nothing happened' where summary = 'it happened 7'`);
    db.close();
    await expect(verifyBackup(bytesOf(await backupOf(from)), nobody)).rejects.toThrow(
      /at position \d+, the hash does not match the event/,
    );
  });
});
