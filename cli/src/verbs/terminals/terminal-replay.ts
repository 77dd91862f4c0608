import { constants } from 'node:os';
import { setTimeout as waitFor } from 'node:timers/promises';
import { getTerminal, getTranscript } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { exits, usageError } from '../../exit.ts';
import { readCast } from '../../terminal/asciicast.ts';
import type { EndSignal, LocalTerminal } from '../../terminal/local-terminal.ts';
import { Player, playerKeys } from '../../terminal/player.ts';
import { PlainText } from '../../terminal/replay-filter.ts';
import { Spool } from '../../terminal/spool.ts';
import { findTerminal } from './find-terminal.ts';

interface ReplayOptions {
  speed: string;
  idleLimit?: string;
  raw?: boolean;
}

/** Parses a positive decimal number. */
function parseFactor(option: string, text: string, max: number): number {
  const number = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (!(number > 0 && number <= max))
    throw usageError(
      `${option} cannot be ${JSON.stringify(text)}`,
      `Specify a number above 0 and at most ${max}, such as 2 or 0.5.`,
    );
  return number;
}

export async function replay(context: Context, idPart: string, options: ReplayOptions): Promise<number> {
  const speed = parseFactor('--speed', options.speed, 1_000);
  const idleLimit = options.idleLimit === undefined ? null : parseFactor('--idle-limit', options.idleLimit, 86_400);
  const { call } = await context.connect();
  const session_id = await findTerminal(call, idPart);
  const terminal = await context.terminal();
  if (options.raw === true && terminal.hasScreen)
    throw usageError(
      'raw output of a session is unsafe on a terminal',
      `Drop --raw to play it safely, or write it to a file: muster terminal download ${session_id} --format raw -o FILE`,
    );
  const format = options.raw === true ? 'raw' : 'asciicast';
  const { body } = await call(getTranscript, { params: { session_id }, query: { format } });
  if (options.raw === true) for await (const piece of body) await terminal.write(piece);
  else if (terminal.hasScreen) {
    const end = await play(context, terminal, body, { speed, idleLimit });
    if (end !== 'end') return end === 'left' ? exits.done : 128 + constants.signals[end];
    const session = await call(getTerminal, { params: { session_id } }).catch(() => null);
    if (session?.status === 'active')
      context.out.note(`The session continues. To view it: muster terminal attach ${session_id} --view`);
  } else await printText(terminal, body);
  return exits.done;
}

async function printText(terminal: LocalTerminal, body: AsyncIterable<Uint8Array>): Promise<void> {
  const plain = new PlainText();
  for await (const event of readCast(body))
    if (event.kind === 'output') {
      const text = plain.feed(event.text);
      if (text !== '') await terminal.write(Buffer.from(text));
    }
}

async function play(
  context: Context,
  terminal: LocalTerminal,
  body: AsyncIterable<Uint8Array>,
  { speed, idleLimit }: { speed: number; idleLimit: number | null },
): Promise<'end' | 'left' | EndSignal> {
  const { out } = context;
  const spool = await Spool.of(body);
  let tooLarge: string | null = null;
  const player = new Player({
    source: () => spool.read(),
    speed,
    idleLimit,
    write: (text) => terminal.write(Buffer.from(text)),
    size: () => terminal.size(),
    tooLarge: (cols, rows) => {
      const size = terminal.size();
      const first = tooLarge === null;
      tooLarge = `The recording is ${cols}×${rows}, and this terminal is ${size?.cols}×${size?.rows}: enlarge the terminal to see the whole screen.`;
      if (first) void terminal.say(tooLarge);
    },
    clock: () => performance.now(),
    wait: (milliseconds, signal) => waitFor(milliseconds, undefined, { signal }).catch(() => {}),
  });
  terminal.beforeExit(() => player.restore());
  let received: EndSignal | null = null;
  let atEnd = false;
  terminal.onSignal((signal) => {
    received = signal;
    player.press('quit');
  });
  try {
    terminal.read({
      bytes: (bytes) => {
        for (const key of playerKeys(bytes)) player.press(key);
      },
      end: () => {
        if (terminal.hasKeys) player.press('quit');
      },
    });
    atEnd = await player.play();
    await terminal.write(new Uint8Array(0));
  } finally {
    terminal.close();
    await spool.close();
  }
  if (tooLarge !== null) out.note(`\n${tooLarge}`);
  return received ?? (atEnd ? 'end' : 'left');
}
