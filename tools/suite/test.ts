// Runs the checks and the three test tiers, for `npm test`. Runs all of them even if one fails. The last line is the
// summary `N passed, N failed[, N skipped]`. Arguments select the steps to run.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { checks } from '../checks/names.ts';
import { openScratch } from './scratch.ts';
import type { Tally } from './tally.ts';
import { type Outcome, verdict } from './test-summary.ts';

const root = resolve(import.meta.dirname, '../..');
const scratch = openScratch();
// Selects the items of long lists that this run tests; see lib/test/sampled.ts. `npm run soak -- kill-steps` tests
// everything.
process.env.MUSTER_SAMPLE_SEED ??= String(randomInt(2 ** 32));
console.log(`samples: MUSTER_SAMPLE_SEED=${process.env.MUSTER_SAMPLE_SEED}`);

type Act = () => Promise<Omit<Outcome, 'step'>>;

const tier = (name: string) => async () => {
  const path = join(scratch.onDisk, `${name}.json`);
  // Includes the variants of the tier that run with other options.
  const projects = ['--project', name, '--project', `${name}-*`];
  const args = ['run', ...projects, '--reporter=default', '--reporter=./tools/suite/tally.ts'];
  const { ran } = await run(process.execPath, ['node_modules/vitest/vitest.mjs', ...args], { MUSTER_TALLY: path });
  return { ran, tally: readTally(path) };
};

const tiers = ['unit', 'contract', 'e2e'];

/** Runs a command until it exits. Prints its output, or collects it in `captured`. */
async function run(
  command: string,
  args: string[],
  env: Record<string, string> = {},
  captured: Buffer[] | null = null,
) {
  const child = spawn(command, args, {
    ...{ cwd: root, stdio: ['inherit', captured ? 'pipe' : 'inherit', captured ? 'pipe' : 'inherit'] },
    // Killed tests leave files in the scratch folders. Removes them when this run finishes or the next run starts.
    env: { ...process.env, TMPDIR: scratch.onDisk, MUSTER_TEST_MEMORY: scratch.inMemory, ...env },
  });
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: Buffer) => captured?.push(piece));
  const ran = await new Promise<boolean>((resolve) => {
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(false);
    });
    child.on('close', (code) => resolve(code === 0));
  });
  return { ran };
}

/**
 * Starts a check in parallel with the other checks.
 * @returns a function that waits until it has finished and prints its output
 */
function check(name: string): Act {
  const captured: Buffer[] = [];
  const running = run('npm', ['run', '--silent', `check:${name}`], {}, captured);
  return async () => {
    const { ran } = await running;
    process.stdout.write(Buffer.concat(captured));
    return { ran, tally: null };
  };
}

function readTally(path: string): Tally | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Builds the root file systems for test hosts in the background, because the first build takes minutes and only the
 * last tier needs them.
 */
function prepareTestHosts(): ChildProcess | null {
  if (process.platform !== 'linux') return null;
  const command = ['nice', '-n', '5', process.execPath, 'e2e/hosts/prepare.ts'];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...command], { cwd: root, stdio: 'ignore' });
  // The tests report a missing root file system themselves.
  return child.on('error', () => {});
}

/** Builds the console in the background. Tests that need the console report a failed build. */
function prepareConsole(): void {
  spawn(process.execPath, ['tools/build/build-console.ts'], { cwd: root, stdio: 'ignore' }).on('error', () => {});
}

const known = [...checks, ...tiers];
const requested = process.argv.slice(2);
const unknown = requested.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`unknown step ${unknown.join(', ')}; choose from: ${known.join(', ')}`);
  process.exit(2);
}

const isRequested = (name: string) => requested.length === 0 || requested.includes(name);
const hosts = isRequested('e2e') ? prepareTestHosts() : null;
if (isRequested('e2e')) prepareConsole();
const steps: [string, Act][] = [
  ...checks.filter(isRequested).map((name): [string, Act] => [name, check(name)]),
  ...tiers.filter(isRequested).map((name): [string, Act] => [name, tier(name)]),
];
const outcomes: Outcome[] = [];
for (const [step, act] of steps) {
  const began = performance.now();
  console.log(`\n── ${step}`);
  outcomes.push({ step, ...(await act()) });
  console.log(`   ${step}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
hosts?.kill();
scratch.remove();

const { lines, succeeded } = verdict(outcomes, Boolean(process.env.CI));
console.log(`\n${lines.join('\n')}`);
process.exitCode = succeeded ? 0 : 1;
