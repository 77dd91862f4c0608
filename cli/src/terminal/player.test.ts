import { expect, test } from 'vitest';
import { CliError } from '../exit.ts';
import { readCast } from './asciicast.ts';
import { Player, type PlayerKey, playerKeys } from './player.ts';

const cast = (...events: unknown[]): Buffer =>
  Buffer.from([{ version: 2, width: 80, height: 24 }, ...events].map((line) => `${JSON.stringify(line)}\n`).join(''));

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/**
 * Plays a recording with a clock that advances only with each wait.
 * @param keys the time of each key press, in seconds on the clock
 */
async function play(
  recording: Uint8Array,
  options: { speed?: number; idleLimit?: number; keys?: [number, PlayerKey][]; window?: [number, number] } = {},
) {
  let now = 0;
  const shown: string[] = [];
  const tooLarge: string[] = [];
  const keys = [...(options.keys ?? [])];
  const [cols, rows] = options.window ?? [80, 24];
  const player = new Player({
    source: () => inPieces(recording, 7),
    speed: options.speed ?? 1,
    idleLimit: options.idleLimit ?? null,
    write: async (text) => void shown.push(`${(now / 1000).toFixed(1)} ${text}`),
    size: () => ({ cols, rows }),
    tooLarge: (wide, high) => tooLarge.push(`${wide}x${high}`),
    clock: () => now,
    wait: async (milliseconds) => {
      const [key] = keys;
      if (key !== undefined && key[0] * 1000 <= now + milliseconds) {
        now = key[0] * 1000;
        keys.shift();
        player.press(key[1]);
      } else now += milliseconds;
    },
  });
  const atEnd = await player.play();
  return { shown, tooLarge, atEnd, restore: player.restore() };
}

const four = cast([0, 'o', 'a'], [2, 'o', 'b'], [4, 'o', 'c'], [24, 'o', 'd']);
const clearScreen = '\u001b[H\u001b[2J';

test('plays a recording with the original timing, at a higher speed, and with shorter pauses', async () => {
  expect((await play(four)).shown).toEqual(['0.0 a', '2.0 b', '4.0 c', '24.0 d']);
  expect((await play(four, { speed: 4 })).shown).toEqual(['0.0 a', '0.5 b', '1.0 c', '6.0 d']);
  expect((await play(four, { idleLimit: 3 })).shown).toEqual(['0.0 a', '2.0 b', '4.0 c', '7.0 d']);
});

test('pauses, resumes, and quits playback', async () => {
  const paused = await play(four, {
    keys: [
      [1, 'pause'],
      [11, 'pause'],
    ],
  });
  expect(paused.shown).toEqual(['0.0 a', '12.0 b', '14.0 c', '34.0 d']);
  expect(paused.atEnd).toBe(true);
  const left = await play(four, { keys: [[3, 'quit']] });
  expect(left).toMatchObject({ shown: ['0.0 a', '2.0 b'], atEnd: false });
});

test('skips forward immediately, and back by replaying from the beginning', async () => {
  const forward = await play(four, {
    keys: [
      [5, 'forward'],
      [6, 'forward'],
    ],
  });
  expect(forward.shown.at(-1)).toBe('14.0 d');
  const back = await play(four, { keys: [[6, 'back']] });
  expect(back.shown).toEqual(['0.0 a', '2.0 b', '4.0 c', `6.0 ${clearScreen}`, '6.0 a', '7.0 b', '9.0 c', '29.0 d']);
  const beyond = await play(four, { keys: [[1, 'back']] });
  // No output lies between the target and the current position, so the screen is correct, and only the wait restarts.
  expect(beyond.shown.slice(0, 2)).toEqual(['0.0 a', '3.0 b']);
});

test('reports a recording that is larger than the window, before playback and when it grows', async () => {
  const grows = cast([1, 'r', '100x30'], [2, 'r', '90x20'], [3, 'o', 'x']);
  expect((await play(grows)).tooLarge).toEqual(['100x30']);
  expect((await play(grows, { window: [60, 50] })).tooLarge).toEqual(['80x24', '100x30']);
});

test('filters terminal queries, and restores changed modes when playback stops', async () => {
  const { shown, restore } = await play(cast([0, 'o', 'x\u001b[6'], [0, 'o', 'ny\u001b[?1049h']));
  expect(shown.join('')).toBe('0.0 x0.0 y\u001b[?1049h');
  expect(restore).toBe('\u001b[?1049l');
});

test('parses keys as terminals send them', () => {
  expect(playerKeys(Buffer.from(' \u001b[C\u001b[D\u001bOC\u001b[Aq\u0003x'))).toEqual([
    'pause',
    'forward',
    'back',
    'forward',
    'quit',
    'quit',
  ]);
});

test('skips other events and a truncated last line, and includes the line number in errors', async () => {
  const read = async (text: string) => {
    const all = [];
    for await (const each of readCast(inPieces(Buffer.from(text), text.length > 1000 ? 65_536 : 5))) all.push(each);
    return all;
  };
  const good = cast([1, 'i', 'x'], [1, 'b', 'AA=='], [0.5, 'o', 'é'], [2, 'm', 'here']).toString();
  expect(await read(`${good}[3,"o","ha`)).toEqual([
    { kind: 'header', cols: 80, rows: 24 },
    { kind: 'output', at: 1, text: 'é' },
  ]);
  for (const [text, line] of [
    ['', 'line 1'],
    ['{"version":3}\n', 'line 1'],
    ['hello\n', 'line 1'],
    [`${good}nonsense\n`, 'line 6'],
    [`${good}{"o":1}\n`, 'line 6'],
    [`${good}[3,"o","${'x'.repeat(3_000_000)}"]\n`, 'line 6'],
  ] as const) {
    const error = await read(text).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(CliError);
    expect((error as Error).message).toContain(line);
  }
});
