import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Program } from './program.ts';

const scratch = mkdtempSync(join(tmpdir(), 'muster-program-'));
const programs: Program[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) await program.stop(0);
});
afterAll(() => rmSync(scratch, { recursive: true }));

const run = (script: string, logFile?: string) => {
  const program = new Program({
    name: 'it',
    command: process.execPath,
    args: ['-e', script],
    ...(logFile ? { logFile } : {}),
  });
  programs.push(program);
  return program;
};

describe('a child program', () => {
  test('finds the early and late events of a program among other output', async () => {
    const program = run(`
      process.on('SIGUSR2', () => console.log('{"event":"ready","port":2}'));
      console.log('{"event":"ready","port":1}'); console.log('plain'); console.error('{broken');
      setInterval(() => {}, 1000);`);
    expect(await program.event('ready')).toEqual({ event: 'ready', port: 1 });
    expect(await program.event('ready')).toEqual({ event: 'ready', port: 1 });
    const second = program.event('ready', { count: 2 });
    program.kill('SIGUSR2');
    expect(await second).toEqual({ event: 'ready', port: 2 });
    expect(program.events('ready')).toHaveLength(2);
    expect(program.ending).toBeNull();
  });

  test('fails with the exit code and the last lines if a program exits early', async () => {
    const program = run(`console.error('no such database'); process.exitCode = 3;`);
    await expect(program.event('ready')).rejects.toThrow('it exited with code 3 before it printed "ready"');
    expect(program.lastLines(5)).toEqual(['no such database']);
    expect(program.ending).toEqual({ code: 3, signal: null });
  });

  test('finds an event of a program that exits right after printing it', async () => {
    expect(await run(`console.log('{"event":"ready"}')`).event('ready')).toEqual({ event: 'ready' });
  });

  test('reports a missing program as exited, with the reason in its last lines', async () => {
    const program = new Program({ name: 'it', command: '/nowhere/at-all', args: [] });
    const { code } = await program.ended;
    expect(code).toBe(127);
    expect(program.lastLines(3).join()).toContain('/nowhere/at-all');
  });

  test('stops waiting for an event after the timeout', async () => {
    await expect(run('setInterval(() => {}, 1000)').event('ready', { timeoutMs: 50 })).rejects.toThrow(
      'it did not print "ready" within 0.05 s',
    );
  });

  test('sends SIGTERM to a program before killing it', async () => {
    const polite = run(
      `process.on('SIGTERM', () => process.exit(0)); console.log('{"event":"up"}'); setInterval(() => {}, 1000)`,
    );
    await polite.event('up');
    expect(await polite.stop()).toEqual({ code: 0, signal: null });
    const deaf = run(`process.on('SIGTERM', () => {}); console.log('{"event":"up"}'); setInterval(() => {}, 1000)`);
    await deaf.event('up');
    expect(await deaf.stop(20)).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test("writes a program's output to its log file", async () => {
    const path = join(scratch, 'log');
    await run(`console.log('one'); console.error('two')`, path).ended;
    expect(readFileSync(path, 'utf8').split('\n').sort()).toEqual(['', 'one', 'two']);
  });
});
