import { expect, test } from 'vitest';
import { HiddenScreen } from './hidden-screen.ts';
import { Recording } from './recording.ts';
import { Replay } from './replay.ts';

/** Counts the characters written to it. */
class CountedScreen extends HiddenScreen {
  written = 0;
  override write(data: string | Uint8Array, done?: () => void): void {
    this.written += data.length;
    super.write(data, done);
  }
}

/**
 * Creates a recording of lines with colors and multi-byte characters, and some size changes, with one event per second.
 */
function recordingOf(lines: number): Recording {
  const recording = new Recording();
  const events: unknown[] = [{ version: 2, width: 60, height: 12 }];
  for (let line = 0; line < lines; line++) {
    if (line % 9_000 === 5_000) events.push([line, 'r', line % 2_000 === 0 ? '60x12' : '72x15']);
    events.push([line, 'o', `\x1b[3${line % 8}m${line} größer 日本語 ${'·'.repeat(line % 30)}\x1b[0m\r\n`]);
  }
  recording.feed(new TextEncoder().encode(events.map((event) => JSON.stringify(event)).join('\n')));
  recording.end();
  return recording;
}

/** Returns a screen's content after writing all events in order. */
async function playedThrough(recording: Recording, count: number): Promise<string> {
  const screen = new HiddenScreen();
  screen.resize(recording.size.cols, recording.size.rows);
  const drawn = () => new Promise<void>((resolve) => screen.write('', resolve));
  for (const event of recording.events.slice(0, count)) {
    if (typeof event === 'string' || event instanceof Uint8Array) screen.write(event);
    else {
      await drawn();
      screen.resize(event.cols, event.rows);
    }
  }
  await drawn();
  const snapshot = screen.snapshot();
  screen.dispose();
  return snapshot;
}

test('shows the same screen after a long jump without rendering the skipped events', async () => {
  const recording = recordingOf(30_000);
  const total = recording.events.length;
  const screen = new CountedScreen();
  const replay = new Replay(recording, screen);
  await replay.show(total);
  expect(replay.count).toBe(total);
  // Only the final content is written, not the million characters before it.
  expect(screen.written).toBeLessThan(200_000);
  expect(screen.snapshot()).toBe(await playedThrough(recording, total));
  for (const count of [10, 23_050]) {
    await replay.show(count);
    expect(screen.snapshot(), `after ${count} events`).toBe(await playedThrough(recording, count));
  }
  replay.stop();
});

test('restores margins, origin mode, and a hidden cursor after a jump', async () => {
  // The text is long enough for the replay to use the hidden screen.
  const much = Array.from({ length: 20 }, (_, at) => `\r\n${at} ${'·'.repeat(70)}`.repeat(750));
  const texts = [
    '\x1b[?1049h\x1b[?25l\x1b[3;5r\x1b[?6h',
    ...much,
    '\x1b[4h\r\n\x1b[2;4H',
    'this\r\nscrolls\r\nwithin',
    '\x1b[4l\x1b[?6l\x1b[r\x1b[?25h\x1b[?1049l',
    '\x1b[2;6r\x1b[4;1H',
    ...much,
    'below',
    '\x1b[!p\x1b[9;1Hall\r\nrows\r\nagain',
  ];
  const recording = new Recording();
  const events = [{ version: 2, width: 80, height: 10 }, ...texts.map((text, at) => [at, 'o', text])];
  recording.feed(new TextEncoder().encode(events.map((event) => JSON.stringify(event)).join('\n')));
  recording.end();
  const screen = new CountedScreen();
  const replay = new Replay(recording, screen);
  for (const count of [22, 23, 1, 45, 46, 23, 24]) {
    await replay.show(count);
    expect(screen.snapshot(), `after ${count} events`).toBe(await playedThrough(recording, count));
  }
  await replay.show(23);
  expect(screen.snapshot()).toMatch(/\x1b\[3;5r\x1b\[3;7H\x1b\[\?25l$/s);
  expect(screen.written).toBeLessThan(200_000);
  replay.stop();
});

test('abandons a target when a new one is set', async () => {
  const recording = recordingOf(25_000);
  const screen = new CountedScreen();
  const replay = new Replay(recording, screen);
  const first = replay.show(recording.events.length);
  const second = replay.show(20);
  await Promise.all([first, second]);
  expect(replay.count).toBe(20);
  expect(screen.snapshot()).toBe(await playedThrough(recording, 20));
  replay.stop();
});
