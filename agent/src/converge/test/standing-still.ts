import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Does something over and over in a process of its own, which is made to stand still (SIGSTOP) in the middle of it again
 * and again, as on a machine that is far too busy.
 * @param imports what it needs, by name
 * @param work    what is done each time, as a program; a fault in it is what is told
 * @param stillMs for how long it stands still
 * @returns how it went wrong; null when it did not
 */
export async function whileStandingStill(
  imports: Readonly<Record<string, URL>>,
  work: string,
  stillMs: number,
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
  let said = '';
  child.stderr.on('data', (piece) => {
    said += piece;
  });
  await Promise.race([once(child.stdout, 'data'), ended]);
  for (let i = 0; i < 5; i++) {
    child.kill('SIGSTOP');
    await wait(stillMs);
    child.kill('SIGCONT');
    await wait(20);
  }
  child.kill('SIGTERM');
  const [code] = await ended;
  return code === 0 ? null : said;
}
