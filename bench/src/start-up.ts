/**
 * Measures the start-up cost of `muster --help` and `muster status`, compared with `node -e 0` and with a bare HTTPS
 * request to the same server. Judges CPU time, because elapsed time depends on other load on the machine.
 *
 *     npm run bench -- start-up --rounds 9
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getStatus } from '@muster/protocol/http';
import { makeCertificate } from '../../cli/test/certificate.ts';
import { bundles } from '../../tools/build/bundle.ts';
import { conclude } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { scratchDirectory } from './run/scratch.ts';

const root = join(import.meta.dirname, '../..');
const { rounds } = benchOptions({ numbers: { rounds: [7, 1] } });
/** Number of starts per measurement. A single start takes less than the resolution of CPU time. */
const inOneGo = 5;

interface Cost {
  wall: number;
  /** CPU time of one start in milliseconds. */
  cpu: number;
}

/** Starts a program several times in sequence. @returns the mean cost of one start */
function startOften(command: readonly string[], env: NodeJS.ProcessEnv): Promise<Cost> {
  const script = `n=0; while [ $n -lt ${inOneGo} ]; do "$@" > /dev/null 2>&1 || exit 1; n=$((n+1)); done; times`;
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn('sh', ['-c', script, 'sh', ...command], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (said += piece));
    child.on('close', (exit) => {
      const wall = (performance.now() - startedAt) / inOneGo;
      // The second line of `times` contains the user and system time of child processes.
      const times = [...(said.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
      if (exit !== 0 || times.length !== 2)
        reject(new Error(`\`${command.join(' ')}\` failed, or its CPU time could not be read`));
      else {
        const seconds = times.reduce((sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest), 0);
        resolve({ wall, cpu: (seconds * 1000) / inOneGo });
      }
    });
  });
}

const home = scratchDirectory('home');
const tls = await makeCertificate();
const body = JSON.stringify(getStatus.example.answer);
const server = createServer(tls, (_, response) => response.setHeader('content-type', 'application/json').end(body));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
const env = {
  PATH: process.env.PATH,
  HOME: home,
  MUSTER_URL: url,
  MUSTER_FINGERPRINT: tls.fingerprint,
};
const request = `require('node:https').get('${url}/api/v1/status', { rejectUnauthorized: false, agent: false }, (answer) => answer.resume())`;

// Rebuilds outdated bundles, because the launcher runs the sources if a source is newer than its bundle.
await bundles();
const launcher = join(root, 'cli/bin/muster');
const executable = join(root, 'dist/muster');
const node = process.execPath;
const programs: Record<string, readonly string[]> = {
  'node -e 0': [node, '-e', '0'],
  'muster --help, launcher of a clone': [launcher, '--help'],
  'muster --help, from sources': [node, join(root, 'cli/src/main.ts'), '--help'],
  ...(existsSync(executable) ? { 'muster --help, executable': [executable, '--help'] } : {}),
  'bare HTTPS request by Node': [node, '-e', request],
  'muster status, launcher of a clone': [launcher, 'status'],
  ...(existsSync(executable) ? { 'muster status, executable': [executable, 'status'] } : {}),
};

try {
  const costs = new Map(Object.keys(programs).map((name) => [name, [] as Cost[]]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, command] of Object.entries(programs)) costs.get(name)?.push(await startOften(command, env));
    printProgress(`round ${round + 1} of ${rounds}`);
  }
  const of = (name: string, what: keyof Cost) => median((costs.get(name) ?? []).map((cost) => cost[what]));
  console.log(
    table(
      ['one start', 'elapsed ms', 'CPU ms'],
      Object.keys(programs).map((name) => [name, of(name, 'wall'), of(name, 'cpu')]),
    ),
  );
  console.log(
    ratioLine(
      'elapsed time: muster --help (launcher) compared with node -e 0',
      of('muster --help, launcher of a clone', 'wall'),
      of('node -e 0', 'wall'),
      'ms',
    ),
  );
  const [status, bare] = [of('muster status, launcher of a clone', 'wall'), of('bare HTTPS request by Node', 'wall')];
  console.log(ratioLine('elapsed time: muster status (launcher) compared with a bare request', status, bare, 'ms'));
  const ratio = (name: string, baseline: string): Figure =>
    name in programs
      ? of(name, 'cpu') / of(baseline, 'cpu')
      : notJudged('dist/muster does not exist; run `npm run build`');
  process.exitCode = conclude('start-up', {
    sizes: `${rounds} rounds of ${inOneGo} starts`,
    figures: {
      help: ratio('muster --help, launcher of a clone', 'node -e 0'),
      status: ratio('muster status, launcher of a clone', 'bare HTTPS request by Node'),
      helpExecutable: ratio('muster --help, executable', 'node -e 0'),
      statusExecutable: ratio('muster status, executable', 'bare HTTPS request by Node'),
    },
  });
} finally {
  server.close();
  server.closeAllConnections();
}
