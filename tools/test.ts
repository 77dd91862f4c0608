// `npm test`: the checks, then the three tiers of tests, all of them even when one fails. Ends with one line that sums up:
// `N passed, N failed`, and how many were skipped. Arguments name steps, to run only those.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { openScratch } from './scratch.ts';
import { type Outcome, verdict } from './sum.ts';
import type { Tally } from './tally.ts';

const root = resolve(import.meta.dirname, '..');
const scratch = openScratch();

const check = (name: string) => () => ({ ran: run('npm', ['run', '--silent', `check:${name}`]), tally: null });
const tier = (name: string) => () => {
  const path = join(scratch.onDisk, `${name}.json`);
  // With those of it that run alone.
  const projects = ['--project', name, '--project', `${name}-timed`];
  const ran = run(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', ...projects, '--reporter=default', '--reporter=./tools/tally.ts'],
    { MUSTER_TALLY: path },
  );
  return { ran, tally: readTally(path) };
};

const steps: Record<string, () => Omit<Outcome, 'step'>> = {
  types: check('types'),
  lint: check('lint'),
  arrows: check('arrows'),
  unused: check('unused'),
  docs: check('docs'),
  packages: check('packages'),
  unit: tier('unit'),
  contract: tier('contract'),
  e2e: tier('e2e'),
};

function run(command: string, args: string[], env: Record<string, string> = {}): boolean {
  const { status, error } = spawnSync(command, args, {
    ...{ cwd: root, stdio: 'inherit' },
    // Whatever a test leaves behind, also one that is killed, is in there, and goes with this run or at the next.
    env: { ...process.env, TMPDIR: scratch.onDisk, MUSTER_TEST_MEMORY: scratch.inMemory, ...env },
  });
  if (error) console.error(`${command}: ${error.message}`);
  return status === 0;
}

function readTally(path: string): Tally | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/** On a machine that has none yet the roots of test hosts take minutes; nobody waits for them until the last tier. */
function prepareTestHosts(): ChildProcess | null {
  if (process.platform !== 'linux') return null;
  const command = ['nice', '-n', '5', process.execPath, 'e2e/hosts/prepare.ts'];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...command], { cwd: root, stdio: 'ignore' });
  // The tests say what is missing.
  return child.on('error', () => {});
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in steps));
if (unknown.length > 0) {
  console.error(`no step ${unknown.join(', ')}; there are: ${Object.keys(steps).join(', ')}`);
  process.exit(2);
}

const outcomes: Outcome[] = [];
const hosts = wanted.length === 0 || wanted.includes('e2e') ? prepareTestHosts() : null;
for (const [step, act] of Object.entries(steps)) {
  if (wanted.length > 0 && !wanted.includes(step)) continue;
  const began = performance.now();
  console.log(`\n── ${step}`);
  outcomes.push({ step, ...act() });
  console.log(`   ${step}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
hosts?.kill();
scratch.remove();

const { lines, succeeded } = verdict(outcomes, Boolean(process.env.CI));
console.log(`\n${lines.join('\n')}`);
process.exitCode = succeeded ? 0 : 1;
