import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createOutput } from '../context/output.ts';
import { createPrompter } from './prompt.ts';

/** A terminal that the test types into, and the text that the program wrote to it. */
function terminal() {
  let text = '';
  let isRaw = false;
  const input = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (raw: boolean) => {
      isRaw = raw;
    },
  });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  output.on('data', (piece: Buffer) => (text += piece.toString('utf8')));
  return { input, output, text: () => text, isRaw: () => isRaw };
}

test.each(['confirm', 'ask', 'choose', 'secret'] as const)(
  'restores the terminal after a signal during a question (%s)',
  async (kind) => {
    const { input, output, text, isRaw } = terminal();
    let giveBack = () => {};
    let isOver = false;
    const prompt = createPrompter(
      () => input,
      output,
      (end) => {
        giveBack = end;
        return () => {
          isOver = true;
        };
      },
    );
    const answer = {
      confirm: () => prompt.confirm('Now?'),
      ask: () => prompt.ask('Who?', 'ada', () => undefined),
      choose: () => prompt.choose('Which?', [{ value: 'a', label: 'A' }], new AbortController().signal),
      secret: () => prompt.secret('Passphrase'),
    }
      [kind]()
      .catch((error: Error) => error.message);
    await expect.poll(() => text().includes('?25l') && isRaw()).toBe(true);
    giveBack();
    // Checks synchronously, because the signal terminates the program right after its handlers.
    expect(isRaw()).toBe(false);
    expect(text().lastIndexOf('?25h')).toBeGreaterThan(text().lastIndexOf('?25l'));
    expect(await answer).toBe(kind === 'choose' ? null : 'canceled; nothing was changed');
    expect(isOver).toBe(true);
  },
);

test('pauses the progress display while a question is open', () => {
  const { output } = terminal();
  const written: string[] = [];
  const stderr = Object.assign(output, { write: (text: string) => written.push(text) > 0 });
  const out = createOutput({
    stdout: stderr,
    stderr,
    env: { TERM: 'xterm' },
    json: false,
    verbose: false,
    now: () => 0,
  });
  const block = out.live();
  block.draw(['at work']);
  const goOn = out.pauseDrawing();
  expect(written.pop()).toBe('\u001b[1A\r\u001b[0J');
  block.draw(['at work still']);
  expect(written).toEqual(['at work\n']);
  goOn();
  block.draw(['and on']);
  expect(written).toEqual(['at work\n', 'and on\n']);
});
