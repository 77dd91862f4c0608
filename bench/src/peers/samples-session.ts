import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { usageOf } from '../servers/server-process.ts';

/**
 * Measures Prometheus while it scrapes machines that this process simulates: one target a machine, with the metrics
 * that a Muster sample contains. Prints JSON with the CPU time and the number of scrapes during the measurement, and the
 * memory.
 *
 *     node samples-session.ts MACHINES INTERVAL SECONDS
 */

export interface ScrapeFigures {
  version: string;
  cpuSecs: number;
  /** Number of scrapes during the measurement; each scrape returns one sample from one machine. */
  scrapes: number;
  rss: number;
}

const [machines, interval, seconds] = process.argv.slice(2).map(Number) as [number, number, number];
const program = '/usr/bin/prometheus';
const folder = '/var/tmp/prometheus-bench';
/** Names of the measures in a sample, as in protocol/src/metrics.ts. */
const measures = [
  ...['cpu_usage', 'memory_total', 'memory_used', 'swap_used', 'disk_total', 'disk_used', 'load1', 'net_rx_bytes'],
  ...['net_tx_bytes', 'processes', 'uptime'],
];

let scrapes = 0;
const exporter = createServer((_, response) => {
  scrapes++;
  const text = measures.map((name) => `machine_${name} ${Math.random() * 1e9}\n`).join('');
  response.setHeader('content-type', 'text/plain; version=0.0.4').end(text);
});
await new Promise<void>((resolve) => exporter.listen(0, '127.0.0.1', resolve));
const { port } = exporter.address() as AddressInfo;

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const targets = Array.from({ length: machines }, (_, n) => ({
  targets: [`127.0.0.1:${port}`],
  labels: { __metrics_path__: `/machine/${n}`, instance: `machine-${n}` },
}));
const config = {
  global: { scrape_interval: `${interval}s`, scrape_timeout: `${interval}s` },
  scrape_configs: [{ job_name: 'machines', static_configs: targets }],
};
// YAML is a superset of JSON.
writeFileSync(`${folder}/prometheus.yml`, JSON.stringify(config));
const child = spawn(
  program,
  [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, '--web.listen-address=127.0.0.1:0'],
  { stdio: ['ignore', 'ignore', 'pipe'] },
);
let log = '';
child.stderr.on('data', (piece) => {
  log += piece;
});
child.once('exit', (code) => {
  throw new Error(`prometheus exited with code ${code}: ${log.slice(-2_000)}`);
});
// Each machine has been scraped at least once, and Prometheus has allocated its series.
while (scrapes < machines) await sleep(100);
await sleep(interval * 1000);
const before = { cpuSecs: usageOf(child.pid!).cpuSecs, scrapes };
await sleep(seconds * 1000);
const after = usageOf(child.pid!);
const figures: ScrapeFigures = {
  version: /version=([\d.]+)/.exec(log)?.[1] ?? 'unknown',
  cpuSecs: after.cpuSecs - before.cpuSecs,
  scrapes: scrapes - before.scrapes,
  rss: after.rss,
};
console.log(JSON.stringify(figures));
child.removeAllListeners('exit');
child.kill();
exporter.close();
exporter.closeAllConnections();
