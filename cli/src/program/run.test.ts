import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { openLocalTerminal } from '../terminal/local-terminal.ts';
import { runProgram } from './program.ts';

test('opens standard input only for a command that reads it', async () => {
  let text = '';
  const sink = new PassThrough().on('data', (piece: Buffer) => (text += piece.toString()));
  const exit = await runProgram(['profile', 'list'], {
    env: { HOME: '/nonexistent' },
    get stdin(): never {
      throw new Error('opened standard input');
    },
    stdout: sink,
    stderr: sink,
    now: () => 0,
    sleep: async () => {},
    terminal: async () => openLocalTerminal(process),
    onInterrupt: () => () => {},
    onEnd: () => () => {},
  });
  expect([exit, text]).toEqual([0, expect.stringContaining('There are no profiles yet')]);
});
