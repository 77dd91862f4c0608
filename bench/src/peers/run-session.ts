import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Machine, repositoryInside } from '../../../e2e/hosts/machine.ts';

/**
 * Runs a file in this directory on a machine, and copies its progress to standard error.
 * @returns the JSON that the file prints
 * @throws Error with the output if the file fails
 */
export async function runSession(machine: Machine, file: string, ...args: readonly string[]): Promise<unknown> {
  const node = join(repositoryInside, 'node_modules/.bin/node');
  const child = machine.begin([node, join(repositoryInside, 'bench/src/peers', file), ...args]);
  child.stderr!.pipe(process.stderr);
  const [output, [code]] = await Promise.all([text(child.stdout!), once(child, 'close')]);
  if (code !== 0) throw new Error(`${file} exited with code ${code}: ${output}`);
  return JSON.parse(output);
}
