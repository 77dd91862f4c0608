import { Client } from 'pg';
import { migratePostgres } from '../../src/store/postgres/migrate-postgres.ts';
import { migrateSqlite } from '../../src/store/sqlite/migrate-sqlite.ts';
import { nextMigrations, oneMore } from './migrations.ts';

/**
 * Migrates to the next version or a given version, and kills its own process with SIGKILL after a number of statements.
 */
const [kind, address, after, of = String(oneMore.version)] = process.argv.slice(2);
const options = {
  migrations: nextMigrations,
  now: () => 2,
  onProgress: ({ version, done }: { version: number; done: number }) => {
    if (version === Number(of) && done === Number(after)) process.kill(process.pid, 'SIGKILL');
  },
};
if (kind === 'sqlite') migrateSqlite(address!, options);
else {
  const client = new Client({ connectionString: address! });
  await client.connect();
  await migratePostgres(client, options);
  await client.end();
}
