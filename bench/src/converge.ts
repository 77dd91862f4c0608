import { TestHosts } from '../../e2e/hosts/test-hosts.ts';
import { missing as missingHere } from '../../e2e/requirements.ts';
import type { Measured } from './peers/converge-session.ts';
import type { Workload } from './peers/converge-workload.ts';
import { peers } from './peers/peers.ts';
import { peersRoot } from './peers/peers-root.ts';
import { runSession } from './peers/run-session.ts';
import { bars } from './run/bars.ts';
import { conclude } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { median } from './run/quantiles.ts';
import { type Cell, table } from './run/report.ts';

/**
 * Measures how long Muster, CFEngine, Puppet, and Ansible take to reach the same desired state on a test host with
 * Debian and systemd: 200 files of 1 KiB in 20 directories, first created and then checked; and 50 packages and 50
 * services that already exist, checked twice. The time for Muster starts when the agent receives the operation and ends
 * with its last durable result. The time for a peer is the duration of its documented command.
 *
 *     npm run bench -- converge [--rounds 5] [--peers CFEngine,Puppet,Ansible] [--only files|machine]
 *
 * Requires root, as the end-to-end tests with test hosts do. The first run fetches the peers from a Debian mirror. Ansible
 * takes most of the time.
 */
const options = benchOptions({
  numbers: { rounds: [5, 1] },
  texts: { peers: null, only: null },
});
const everybody = peers.map(({ name }) => name);
const requested = options.peers?.split(',').filter(Boolean) ?? (options.smoke ? [] : everybody);
for (const name of requested)
  if (!peers.some((peer) => peer.name === name))
    throw new Error(`--peers: unknown peer "${name}"; choose from ${everybody.join(', ')}`);

const workloads: readonly { workload: Workload; title: string }[] = [
  { workload: 'files', title: '200 files of 1 KiB, 20 directories' },
  { workload: 'machine', title: '50 existing packages and 50 existing units' },
];

/** Prints the durations of a workload. @returns the ratio of Muster to each peer, by bar name */
function figuresOf(
  { workload, title }: (typeof workloads)[number],
  measured: Readonly<Record<string, Measured>>,
): Record<string, Figure> {
  const own = measured.Muster as Measured;
  const rows: Cell[][] = [];
  const figures: Record<string, Figure> = {};
  for (const [name, { first, again, missing }] of Object.entries(measured)) {
    if (missing !== null) rows.push([name, missing, null, null, null]);
    else
      rows.push([
        ...[name, median(first), median(again)],
        ...(name === 'Muster' ? [null, null] : [median(first) / median(own.first), median(again) / median(own.again)]),
      ]);
    if (name === 'Muster') continue;
    for (const [run, mine, theirs] of [
      ['first', own.first, first],
      ['second', own.again, again],
    ] as const) {
      const why = own.missing ?? missing;
      figures[`${workload} ${run} ${name}`] = why === null ? median(mine) / median(theirs) : notJudged(why);
    }
  }
  console.log(`\n${title}: median of ${options.rounds} rounds, in milliseconds; × is the ratio to Muster\n`);
  console.log(table(['', 'first run', 'second run', 'first ×', 'second ×'], rows));
  console.log('');
  if (own.missing !== null) throw new Error(`Muster did not reach the desired state: ${own.missing}`);
  return figures;
}

const reason = missingHere('linux', 'root', 'namespaces', 'hosts');
if (reason !== null) {
  const cannot = notJudged(`the bench ${reason}`);
  conclude('converge', {
    sizes: '',
    figures: Object.fromEntries(Object.keys(bars.converge).map((name) => [name, cannot])),
  });
  process.exit(2);
}
const hosts = await TestHosts.open(requested.length > 0 ? { base: await peersRoot(), inMemory: false } : {});
// Peers that were not requested have no figure.
const figures: Record<string, Figure> = Object.fromEntries(
  Object.keys(bars.converge).map((name) => [name, notJudged('omitted by --peers or --only')]),
);
let system = '';
try {
  const machine = await hosts.start('converge');
  for (const work of workloads) {
    const { workload, title } = work;
    if (options.only !== null && options.only !== workload) continue;
    console.error(`${title}:`);
    const session = await runSession(machine, 'converge-session.ts', workload, String(options.rounds), ...requested);
    const answered = session as { system: string; measured: Record<string, Measured> };
    system = answered.system;
    Object.assign(figures, figuresOf(work, answered.measured));
  }
} finally {
  await hosts.end();
}
process.exitCode = conclude('converge', { sizes: `${system}, ${options.rounds} rounds`, figures });
