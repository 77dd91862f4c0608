import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Runs code in a loop in a separate process, which it suspends (SIGSTOP) several times to simulate an overloaded
 * machine.
 * @param imports modules that the code uses, by imported name
 * @param work JavaScript source; an error in it stops the loop
 * @param suspendedMs duration of each suspension
 * @returns the error output; null if the code did not fail
 */
export async function whileSuspended(
  imports: Readonly<Record<string, URL>>,
  work: string,
  suspendedMs: number,
): Promise<string | null> {
  const program = `
    ${Object.entries(imports)
      .map(([name, module]) => `import { ${name} } from ${JSON.stringify(module.pathname)};`)
      .join('\n')}
    process.once('SIGTERM', () => process.exit(0));
    const work = () => { ${work} };
    work();
    console.log('begun');
    for (;;) {
      work();
      await new Promise((resolve) => setImmediate(resolve));
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let errors = '';
  child.stderr.on('data', (piece) => {
    errors += piece;
  });
  await Promise.race([once(child.stdout, 'data'), ended]);
  for (let i = 0; i < 5; i++) {
    child.kill('SIGSTOP');
    await wait(suspendedMs);
    child.kill('SIGCONT');
    await wait(20);
  }
  child.kill('SIGTERM');
  const [code] = await ended;
  return code === 0 ? null : errors;
}
