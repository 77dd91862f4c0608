// Runs all checks in parallel, for `npm run check`. Prints the output of failed checks and the duration of each check.
import { spawn } from 'node:child_process';
import { root } from '../suite/cli.ts';
import { checks } from './names.ts';

async function run(name: string): Promise<boolean> {
  const began = performance.now();
  const child = spawn('npm', ['run', '--silent', `check:${name}`], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => output.push(piece));
  const passed = await new Promise<boolean>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code === 0));
  });
  console.log(`${passed ? 'passed' : 'FAILED'}  ${name}  ${((performance.now() - began) / 1000).toFixed(1)} s`);
  if (!passed) process.stdout.write(Buffer.concat(output));
  return passed;
}

const outcomes = await Promise.all(checks.map(run));
process.exitCode = outcomes.every(Boolean) ? 0 : 1;
