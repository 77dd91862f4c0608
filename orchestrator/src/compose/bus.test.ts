import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Returns whether a process that imports a file loads the NATS client. */
function loadsNats(file: string): boolean {
  const script = `
    import { createRequire } from 'node:module';
    await import(${JSON.stringify(join(import.meta.dirname, file))});
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    console.log(loaded.some((path) => path.includes('@nats-io')));`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' }));
}

test('loads the NATS client only for a bus that uses it', () => {
  expect(loadsNats('start.ts')).toBe(false);
  expect(loadsNats('../bus/nats-bus.ts')).toBe(true);
});
