import { join } from 'node:path';
import { measureNames, type Sample } from '@muster/protocol';
import { Client } from 'pg';
import { openPostgres } from '../../orchestrator/src/store/postgres/postgres.ts';
import { openPostgresSamples } from '../../orchestrator/src/store/samples/samples-postgres.ts';
import { openSqliteSamples } from '../../orchestrator/src/store/samples/samples-sqlite.ts';
import { openSqliteFile } from '../../orchestrator/src/store/sqlite/sqlite-connection.ts';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { scratchDirectory } from './run/scratch.ts';
import { benchDatabase } from './servers/bench-database.ts';

/**
 * Measures how many samples the sample store accepts per second, one at a time, as agents send them. Compares this rate
 * with raw inserts of the same rows into a table with the same columns and key, in transactions of the same maximum
 * size: by better-sqlite3 in this thread, or on PostgreSQL by one statement with an array for each column. Both write
 * to the same disk, alternately.
 *
 *     node bench/src/metrics.ts [--agents 10000] [--samples 30] [--rounds 3] [--database sqlite|postgres]
 *                               [--directory DIR] [--json]
 */
const options = benchOptions({
  numbers: { agents: [10_000, 50], samples: [30, 2], rounds: [3, 1] },
  texts: { database: 'sqlite', directory: null },
});
const agents = Array.from({ length: options.agents }, (_, n) => n.toString(16).padStart(32, '0'));
const each = options.samples;
const perTransaction = 20_000;
const start = 1_800_000_000;

const sampleAt = (at: number, n: number): Sample => ({
  collected_at: at,
  cpu_usage: (n % 1000) / 10,
  memory_total: 8_589_934_592,
  memory_used: 2_147_483_648 + n,
  swap_used: 0,
  disk_total: 107_374_182_400,
  disk_used: 32_212_254_720 + n,
  load1: (n % 100) / 50,
  net_rx_bytes: 123_456_789 + n,
  net_tx_bytes: 98_765_432 + n,
  processes: 140 + (n % 20),
  uptime: at - start + 864_000,
});

const rateOf = (milliseconds: number) => (agents.length * each) / (milliseconds / 1000);

const fatal = (reason: Error) => {
  throw reason;
};

/** Measures the store. @param location a file, or a database URL. @returns samples per second */
async function stored(location: string): Promise<number> {
  const store =
    database.url === null
      ? await openSqliteSamples({ file: location, retentionSecs: 86_400, onFatal: fatal })
      : await openPostgresSamples({ url: location, retentionSecs: 86_400 });
  const startedAt = performance.now();
  for (let minute = 0; minute < each; minute++)
    await Promise.all(agents.map((agent, n) => store.add(agent, [sampleAt(start + minute * 60, n)])));
  const took = performance.now() - startedAt;
  await store.close();
  return rateOf(took);
}

async function rawOnPostgres(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const typeOf = (name: string) => (name === 'cpu_usage' || name === 'load1' ? 'double precision' : 'bigint');
  const types = ['text', 'bigint', ...measureNames.map(typeOf)];
  await client.query(`create table raw_samples (node_id text not null, collected_at bigint not null,
    ${measureNames.map((name) => `${name} ${typeOf(name)}`).join(', ')}, primary key (node_id, collected_at))`);
  const text = `insert into raw_samples select * from unnest(${types.map((type, n) => `$${n + 1}::${type}[]`).join(', ')})`;
  const startedAt = performance.now();
  let nodes: string[] = [];
  let samples: Sample[] = [];
  const flush = async () => {
    const times = samples.map((sample) => sample.collected_at);
    const measures = measureNames.map((name) => samples.map((sample) => sample[name]));
    await client.query({ name: 'raw', text, values: [nodes, times, ...measures] });
    nodes = [];
    samples = [];
  };
  for (let minute = 0; minute < each; minute++)
    for (const [n, agent] of agents.entries()) {
      nodes.push(agent);
      samples.push(sampleAt(start + minute * 60, n));
      if (samples.length === perTransaction) await flush();
    }
  if (samples.length > 0) await flush();
  const took = performance.now() - startedAt;
  await client.end();
  return rateOf(took);
}

function raw(file: string): number {
  const db = openSqliteFile(file);
  db.pragma('journal_mode = wal');
  db.pragma('synchronous = normal');
  db.pragma('cache_size = -32000');
  const columns = measureNames.map(
    (name) => `${name} ${name === 'cpu_usage' || name === 'load1' ? 'real' : 'integer'}`,
  );
  db.exec(`create table samples (node_id text not null, collected_at integer not null, ${columns.join(', ')},
    primary key (node_id, collected_at)) strict, without rowid`);
  const marks = Array.from({ length: measureNames.length + 2 }, () => '?').join(', ');
  const insert = db.prepare(`insert into samples values (${marks})`);
  const startedAt = performance.now();
  let open = 0;
  for (let minute = 0; minute < each; minute++)
    for (const [n, agent] of agents.entries()) {
      if (open === 0) db.exec('begin immediate');
      const sample = sampleAt(start + minute * 60, n);
      insert.run(agent, sample.collected_at, ...measureNames.map((name) => sample[name]));
      if (++open === perTransaction) {
        db.exec('commit');
        open = 0;
      }
    }
  if (open > 0) db.exec('commit');
  const took = performance.now() - startedAt;
  db.close();
  return rateOf(took);
}

const database = await benchDatabase(options.database);
const directory = scratchDirectory('metrics', options.directory);
try {
  const rounds: { store: number; raw: number }[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const url = await database.another();
    if (url === null) {
      const one = raw(join(directory, `raw-${round}.db`));
      rounds.push({ raw: one, store: await stored(join(directory, `store-${round}.db`)) });
    } else {
      await (await openPostgres({ url, now: () => Date.now() })).close();
      rounds.push({ raw: await rawOnPostgres(url), store: await stored(url) });
    }
    const one = rounds.at(-1)!;
    printProgress(`round ${round + 1}: ${(one.store / one.raw).toFixed(2)} × of raw inserts`);
  }
  const typical = (name: 'store' | 'raw') => median(rounds.map((one) => one[name]));
  console.log(`${options.database}: ${agents.length} agents, ${each} samples each, ${rounds.length} rounds`);
  console.log(
    table(
      ['method', 'samples/s'],
      [
        ['raw inserts', typical('raw')],
        ['sample store', typical('store')],
      ],
    ),
  );
  console.log(`ratio of each round: ${rounds.map((one) => (one.store / one.raw).toFixed(2)).join(', ')}`);
  console.log(ratioLine('stored', typical('store'), typical('raw'), 'samples/s'));
  const ratio = median(rounds.map((one) => one.store / one.raw));
  process.exitCode = conclude('metrics', {
    sizes: `${options.database}, ${agents.length} agents, ${each} samples each, ${rounds.length} rounds`,
    figures: { stored: ratio },
  });
} finally {
  await database.stop();
}
