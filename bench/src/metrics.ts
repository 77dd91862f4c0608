import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureNames, type Sample } from '@muster/protocol';
import { openSqliteSamples } from '../../orchestrator/src/store/samples-sqlite.ts';
import { openSqliteFile } from '../../orchestrator/src/store/sqlite-connection.ts';
import { atLeast, conclude, ratioLine, table } from './report.ts';

/**
 * Samples stored a second: as agents send them, one each, to the store with its batches and its writer thread; against
 * raw inserts of the same rows into a table of the same shape and key, by better-sqlite3 in this thread, as many to a
 * transaction as the store may put into one. Both files lie on the same disk, and the two take turns.
 *
 *     node bench/src/metrics.ts [--agents 10000] [--samples 30] [--rounds 3] [--directory DIR] [--json]
 */
const { values: options } = parseArgs({
  options: {
    agents: { type: 'string', default: '10000' },
    samples: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '3' },
    directory: { type: 'string', default: tmpdir() },
    json: { type: 'boolean', default: false },
  },
});
const agents = Array.from({ length: Number(options.agents) }, (_, n) => n.toString(16).padStart(32, '0'));
const each = Number(options.samples);
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

async function stored(file: string): Promise<number> {
  const store = await openSqliteSamples({
    file,
    retentionSecs: 86_400,
    onFatal: (reason) => {
      throw reason;
    },
  });
  const begun = performance.now();
  for (let minute = 0; minute < each; minute++)
    await Promise.all(agents.map((agent, n) => store.add(agent, [sampleAt(start + minute * 60, n)])));
  const took = performance.now() - begun;
  await store.close();
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
  const begun = performance.now();
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
  const took = performance.now() - begun;
  db.close();
  return rateOf(took);
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const directory = mkdtempSync(join(options.directory, 'muster-bench-metrics-'));
try {
  const rounds: { store: number; raw: number }[] = [];
  for (let round = 0; round < Number(options.rounds); round++)
    rounds.push({
      raw: raw(join(directory, `raw-${round}.db`)),
      store: await stored(join(directory, `store-${round}.db`)),
    });
  const typical = (name: 'store' | 'raw') => median(rounds.map((one) => one[name]));
  console.log(`${agents.length} agents, ${each} samples each, ${rounds.length} rounds`);
  console.log(
    table(
      ['way', 'samples/s'],
      [
        ['raw inserts', typical('raw')],
        ['the store', typical('store')],
      ],
    ),
  );
  console.log(`ratio of each round: ${rounds.map((one) => (one.store / one.raw).toFixed(2)).join(', ')}`);
  console.log(ratioLine('stored', typical('store'), typical('raw'), 'samples/s'));
  const ratio = median(rounds.map((one) => one.store / one.raw));
  process.exitCode = conclude('metrics', [atLeast('samples stored a second', 100 * ratio, 50, '%')]);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
