import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OperationMessage } from '@muster/protocol/wire';
import { build } from 'esbuild';
import { agentBundle } from './bundle.ts';

/** Kills an agent that runs in its own process. In a separate file, because esbuild cannot be bundled. */

let doomed: Promise<string> | null = null;

/** Bundles the agent once, because reading a hundred files takes half of its startup time. */
async function bundledDoomed(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-doomed-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, 'doomed.mjs');
  await build({
    entryPoints: [new URL('./doomed.ts', import.meta.url).pathname],
    outfile,
    ...agentBundle,
  });
  return outfile;
}

/**
 * Runs operations with an agent that kills itself (SIGKILL) at a step of the last operation, leaving its work
 * unfinished.
 * @param at number of the step, counted from 1; 0 for never
 */
export async function killedOff(
  dataDir: string,
  operations: readonly OperationMessage[],
  at: number,
): Promise<{ points: string[]; killed: boolean }> {
  doomed ??= bundledDoomed();
  const program = await doomed;
  const list = `${dataDir}/../operations.json`;
  writeFileSync(list, JSON.stringify(operations));
  const child = spawn(process.execPath, [program, dataDir, list, String(at)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (piece) => {
    out += piece;
  });
  return await new Promise((resolve) =>
    child.once('close', (_code, signal) => resolve({ points: out.trim().split('\n'), killed: signal === 'SIGKILL' })),
  );
}
