import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/**
 * Runs benches by name, or says which there are. Each is a program of its own, so that none inherits another's heap.
 *
 *     npm run bench -- writes
 *     npm run bench -- connect --agents 2000
 */
const benches: Readonly<Record<string, string>> = {
  agent: 'an idle agent: memory and processor time, against a bare node',
  api: 'one agent’s record, lists and tags over the API, against the bare framework',
  connect: 'agents connected: memory and CPU each, against bare ws over TLS 1.3',
  console: 'the console with 10,000 agents: first load, until rows answer, scrolling, memory under events',
  converge: '220 files, 50 packages and 50 units on a machine, against CFEngine, Puppet and Ansible',
  'fan-out': 'an apply that changes nothing on every agent, against the same bytes with nothing kept',
  fleet: 'what agents cost that send samples, a tenth and all of them, and what the API is slower with them',
  metrics: 'samples stored a second, against raw batched inserts',
  'metrics-day': 'a day of samples of 1,000 agents: bytes on disk, and how fast they are given back',
  'start-up': 'muster --help and muster status, against a bare node and a bare HTTPS request',
  terminal: 'a shell that shows without end, and the echo of keys under 1,000 agents, against a local terminal',
  writes: 'units committed a second, and the delay of the event loop meanwhile',
};

const [name = '', ...options] = process.argv.slice(2);
if (!Object.hasOwn(benches, name)) {
  if (name !== '') console.error(`There is no bench ${name}.`);
  console.log('Usage: npm run bench -- NAME [options]\n');
  for (const [bench, what] of Object.entries(benches)) console.log(`  ${bench.padEnd(13)}${what}`);
  process.exit(name === '' ? 0 : 2);
}
const { status, signal } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`), ...options], {
  stdio: 'inherit',
});
process.exit(status ?? (signal === null ? 1 : 130));
