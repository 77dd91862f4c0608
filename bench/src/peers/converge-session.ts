import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Workload, workFolder, wrongFile } from './converge-workload.ts';
import { type Peer, peers } from './peers.ts';

/**
 * Measures Muster and its peers on the machine to configure. Every round runs each of them twice in a row, so that other
 * load on the machine affects all of them. Prints JSON with milliseconds by name, or the reason why a peer is missing.
 *
 *     node converge-session.ts WORKLOAD ROUNDS NAME…
 */

export interface Measured {
  first: number[];
  again: number[];
  /** The reason why figures are missing; null if figures exist. */
  missing: string | null;
}

const [workload, rounds, ...names] = process.argv.slice(2) as [Workload, string, ...string[]];
const policies = join(import.meta.dirname, '../../peers');

function run(command: readonly string[]): { code: number | null; stdout: string; stderr: string; ms: number } {
  const startedAt = performance.now();
  const { status, stdout, stderr } = spawnSync(command[0] as string, command.slice(1), {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: '/root', LANG: 'C.UTF-8' },
    maxBuffer: 64 * 1024 * 1024,
  });
  return { code: status, stdout, stderr, ms: performance.now() - startedAt };
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? '';

function measureMuster(): { first: number; again: number } {
  rmSync(`${workFolder}/muster`, { recursive: true, force: true });
  mkdirSync(`${workFolder}/muster`, { recursive: true });
  const ran = run([process.execPath, join(import.meta.dirname, 'converge-muster.ts'), workload]);
  if (ran.code !== 0)
    throw new Error(/^Error: (.*)$/m.exec(ran.stderr)?.[1] ?? `converge-muster.ts exited with code ${ran.code}`);
  return JSON.parse(lastLine(ran.stdout));
}

function theirs(peer: Peer): { first: number; again: number } {
  rmSync(`${workFolder}/${peer.name.toLowerCase()}`, { recursive: true, force: true });
  const once = (again: boolean): number => {
    const ran = run(peer.command(join(policies, workload)));
    if (!peer.succeeded(ran, again))
      throw new Error(`${again ? 'second' : 'first'} run, code ${ran.code}: ${lastLine(ran.stderr || ran.stdout)}`);
    return ran.ms;
  };
  const first = once(false);
  return { first, again: once(true) };
}

/** Creates units, half of which exit and half of which keep running. */
function makeUnits(): void {
  const units = Array.from({ length: 50 }, (_, i) => `converge-${i}`);
  for (const [i, unit] of units.entries()) {
    const service =
      i % 2 === 0 ? 'Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true' : 'ExecStart=/bin/sleep infinity';
    const text = `[Unit]\nDescription=unit of the converge bench\n[Service]\n${service}\n[Install]\nWantedBy=multi-user.target\n`;
    writeFileSync(`/etc/systemd/system/${unit}.service`, text);
  }
  writeFileSync(`${workFolder}/units`, `${units.join('\n')}\n`);
  const { code, stderr } = run(['systemctl', 'enable', '--now', ...units]);
  if (code !== 0) throw new Error(stderr);
  const packages = run(['dpkg-query', '--show', '--showformat=${binary:Package} ${db:Status-Status}\n']).stdout;
  const installed = packages.split('\n').flatMap((line) => /^([^ :]+)(?::\S+)? installed$/.exec(line)?.[1] ?? []);
  writeFileSync(`${workFolder}/packages`, `${installed.slice(0, 50).join('\n')}\n`);
}

mkdirSync(workFolder, { recursive: true });
if (workload === 'machine') makeUnits();
const everybody = [
  { name: 'Muster', round: measureMuster },
  ...peers.map((peer) => ({ ...peer, round: () => theirs(peer) })),
];
const measured: Record<string, Measured> = {};
for (const one of everybody) {
  if (one.name !== 'Muster' && !names.includes(one.name)) continue;
  const program = 'program' in one ? one.program : process.execPath;
  const missing = existsSync(program) ? null : `${program} is not installed`;
  measured[one.name] = { first: [], again: [], missing };
}
for (let round = 1; round <= Number(rounds); round++)
  for (const { name, round: act } of everybody) {
    const of = measured[name];
    if (of === undefined || of.missing !== null) continue;
    try {
      const { first, again } = act();
      const wrong = workload === 'files' ? wrongFile(`${workFolder}/${name.toLowerCase()}`) : null;
      if (wrong !== null) throw new Error(wrong);
      of.first.push(first);
      of.again.push(again);
      console.error(`  round ${round} ${name.padEnd(9)} ${first.toFixed(0)} ms, again ${again.toFixed(0)} ms`);
    } catch (error) {
      of.missing = error instanceof Error ? error.message : String(error);
      console.error(`  round ${round} ${name}: ${of.missing}`);
    }
  }
const system = /^PRETTY_NAME="?(.*?)"?$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'unknown';
console.log(JSON.stringify({ system, measured }));
