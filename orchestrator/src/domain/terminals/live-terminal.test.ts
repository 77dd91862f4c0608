import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { MemoryRecording } from '../../../test/memory-recording.ts';
import { defaultRules, MemoryClient, MemoryShell } from '../../../test/terminals.ts';
import type { CastHeader } from '../../store/cast.ts';
import { LiveTerminal, type TerminalRules } from './live-terminal.ts';
import type { ScreenSource } from './screen-source.ts';
import type { TerminalConnectionEvents } from './terminal-client.ts';
import { ended, interrupted, type TerminalEnd } from './terminal-end.ts';

const session_id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const header: CastHeader = {
  width: 80,
  height: 24,
  timestamp: 1,
  title: 'ada on web-1',
  env: {},
  muster: { session_id, operator_id: 'a', operator: 'ada', node_id: 'n', agent: 'web-1', user: 'root' },
};
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

function open(given: Partial<TerminalRules> = {}) {
  const rules = { ...defaultRules, ...given };
  const clock = new ManualClock();
  const recording = new MemoryRecording();
  const ends: { end: TerminalEnd; bytes: number | undefined }[] = [];
  const sources: ScreenSource[] = [];
  const shows: ((screen: Uint8Array) => void)[] = [];
  const live = new LiveTerminal({
    session_id,
    operator_id: 'a',
    cols: 80,
    rows: 24,
    clock,
    rules,
    recording,
    recentScreen: (source) => {
      sources.push(source);
      return new Promise((resolve) => {
        shows.push(resolve);
      });
    },
    onEnded: (end, digest) => ends.push({ end, bytes: digest?.bytes }),
  });
  const shell = new MemoryShell({ session_id, node_id: 'n', cols: 80, rows: 24, shell: null, operator: 'ada' }, live);
  const join = (mode: 'control' | 'view', who = 'a') => {
    const client = new MemoryClient();
    const connection = live.connect(client, { operator_id: who, username: `name-${who}`, mode, since: 5 });
    return Object.assign(client, { connection }) as MemoryClient & { connection: TerminalConnectionEvents };
  };
  const sweep = (ms: number) => {
    clock.advance(ms);
    live.sweep();
  };
  return {
    clock,
    /** Rules that can change during a test, as they do when the configuration is reloaded. */
    rules,
    recording,
    live,
    shell,
    ends,
    sources,
    join,
    sweep,
    /** Resolves all pending screens. */
    screen: (text: string) => {
      for (const show of shows.splice(0)) show(Buffer.from(text));
    },
  };
}

function startTerminal(rules: Partial<TerminalRules> = {}) {
  const opened = open(rules);
  opened.live.begin(opened.shell, header);
  return opened;
}

test('records output, then shows it to all clients, then releases the window', () => {
  const { recording, shell, join, screen } = startTerminal();
  const ada = join('control');
  const eve = join('view', 'e');
  recording.slow = true;
  shell.says('one');
  expect([ada.shown, eve.shown, shell.given]).toEqual(['', '', 0]);
  recording.write();
  expect([ada.shown, eve.shown, shell.given]).toEqual(['one', 'one', 3]);
  ada.stuck = true;
  shell.says('two');
  recording.write();
  // Only the controlling connection causes backpressure.
  expect([ada.shown, eve.shown, shell.given]).toEqual(['onetwo', 'onetwo', 3]);
  ada.take();
  expect(shell.given).toBe(6);
  expect(recording.events).toEqual([
    ['o', 'one'],
    ['o', 'two'],
  ]);
  screen('');
});

test('sends the first controller all earlier output unchanged, so that the controller’s terminal responds to queries', async () => {
  const { shell, join, live, ends, screen } = startTerminal();
  shell.says('\x1b[c$ ');
  const eve = join('view', 'e');
  expect(shell.given).toBe(0);
  const ada = join('control');
  expect(ada.seen).toEqual([{ type: 'resize', cols: 80, rows: 24 }, '\x1b[c$ ']);
  screen('<screen>');
  await nextTurn();
  expect(shell.given).toBe(5);
  // Later connections get a rebuilt screen instead of that output.
  ada.connection.left();
  expect(live.attached).toEqual([{ operator_id: 'e', username: 'name-e', mode: 'view', since: 5 }]);
  shell.says('more');
  expect(shell.given).toBe(9);
  expect(eve.shown).toBe('<screen>more');
  expect(ends).toEqual([]);
});

test('shows the output and exit of a shell that exited before any client connected', async () => {
  const { shell, join, ends, live, sweep } = startTerminal();
  shell.says('This account is not available.\r\n');
  shell.events.exited({ code: 1, signal: null });
  expect(live.over).toBe(false);
  const ada = join('control');
  await nextTurn();
  expect(ada.seen.slice(1)).toEqual(['This account is not available.\r\n', { type: 'exit', code: 1, signal: null }]);
  expect(ada.over).toBe('closed');
  expect(ends).toMatchObject([{ end: { status: 'closed', reason: 'the shell ended with exit code 1' } }]);
  const other = startTerminal();
  other.shell.events.exited({ code: 0, signal: null });
  other.sweep(9_999);
  expect(other.live.over).toBe(false);
  other.sweep(1);
  await nextTurn();
  expect(other.ends).toHaveLength(1);
  sweep(100_000);
  expect(ends).toHaveLength(1);
});

test('shows a reconnected client the screen, then all later output once and in order', async () => {
  const { recording, shell, join, sources, screen, live } = startTerminal();
  const first = join('control');
  shell.says('before');
  first.connection.left();
  const at = recording.written;
  const back = join('control');
  expect(sources).toEqual([{ session_id, from: expect.any(Number), to: at, cols: 80, rows: 24, opening: '' }]);
  expect(recording.text.slice(sources[0]?.from, at)).toBe('[0,"o","before"]\n');
  shell.says('during');
  back.connection.resized(100, 30);
  shell.says('after');
  expect(back.seen).toHaveLength(1);
  // The output has not been shown, so its credit is not returned to the window.
  expect(shell.given).toBe(6);
  screen('<screen>');
  await nextTurn();
  expect(back.seen).toEqual([
    { type: 'resize', cols: 80, rows: 24 },
    '<screen>during',
    { type: 'resize', cols: 100, rows: 30 },
    'after',
  ]);
  expect(shell.given).toBe(17);
  expect(live.attached).toHaveLength(1);
});

test('lets a newer connection take over immediately, even from a dead connection', async () => {
  const { shell, join, live, screen } = startTerminal();
  const dead = join('control');
  dead.stuck = true;
  shell.says('x'.repeat(1000));
  expect(shell.given).toBe(0);
  const back = join('control', 'b');
  expect([dead.over, dead.code]).toEqual(['cut', 'terminal_taken_over']);
  expect(shell.given).toBe(1000);
  // Data that the dead network accepts afterward is ignored.
  dead.take();
  expect(shell.given).toBe(1000);
  screen('');
  await nextTurn();
  dead.connection.typed(Buffer.from('rm -rf /'));
  dead.connection.left();
  back.connection.typed(Buffer.from('ls'));
  expect(shell.typed).toBe('ls');
  expect(live.attached.map(({ operator_id }) => operator_id)).toEqual(['b']);
});

test('disconnects a viewer that types, resizes, or falls too far behind', () => {
  const { shell, join, live } = startTerminal();
  join('control');
  for (const act of ['typed', 'resized'] as const) {
    const eve = join('view', 'e');
    if (act === 'typed') eve.connection.typed(Buffer.from('x'));
    else eve.connection.resized(10, 10);
    expect([eve.over, eve.code], act).toEqual(['cut', 'forbidden']);
  }
  expect([shell.typed, shell.sizes]).toEqual(['', []]);
  const slow = join('view', 's');
  slow.stuck = true;
  for (let n = 0; n < 16; n++) shell.says('x'.repeat(64 * 1024));
  expect(slow.over).toBeNull();
  shell.says('x');
  expect([slow.over, slow.code]).toEqual(['cut', 'terminal_too_slow']);
  expect(shell.given).toBe(1024 * 1024 + 1);
  expect(live.attached).toHaveLength(1);
});

test('does not disconnect a viewer because of output that precedes its first screen', async () => {
  const { shell, join, screen, live } = startTerminal();
  join('control');
  shell.says('before');
  const eve = join('view', 'e');
  shell.says('x'.repeat(1000));
  expect(shell.given).toBe(6);
  screen('<screen>');
  await nextTurn();
  expect(eve.shown).toBe(`<screen>${'x'.repeat(1000)}`);
  expect(shell.given).toBe(1006);
  const departed = join('view', 'g');
  shell.says('y');
  expect(shell.given).toBe(1006);
  departed.connection.left();
  expect(shell.given).toBe(1007);
  const cut = join('view', 'c');
  shell.says('z');
  live.cutOff('c');
  expect([cut.over, shell.given]).toEqual(['cut', 1008]);
});

test('pauses input while the shell accepts none', () => {
  const { shell, join, recording } = startTerminal();
  const ada = join('control');
  shell.roomy = false;
  ada.connection.typed(Buffer.from('much'));
  expect(ada.paused).toBe(true);
  shell.events.writable();
  expect(ada.paused).toBe(false);
  expect(recording.events).toEqual([]);
  const open = startTerminal({ recordInput: true });
  open.join('control').connection.typed(Buffer.from('pass\r'));
  expect(open.recording.events).toEqual([['i', 'pass\r']]);
  expect(open.shell.typed).toBe('pass\r');
});

test('pauses input while recorded input waits for the disk', () => {
  const { shell, join, recording } = startTerminal({ recordInput: true });
  const ada = join('control');
  recording.slow = true;
  ada.connection.typed(Buffer.alloc(64 * 1024, 'a'));
  expect(ada.paused).toBe(false);
  ada.connection.typed(Buffer.from('b'));
  expect(ada.paused).toBe(true);
  // The shell accepts all input, but the recording waits for the disk.
  shell.events.writable();
  expect(ada.paused).toBe(true);
  shell.roomy = false;
  ada.connection.typed(Buffer.from('c'));
  recording.write();
  expect(ada.paused).toBe(true);
  shell.events.writable();
  expect([ada.paused, shell.typed.length]).toEqual([false, 64 * 1024 + 2]);
});

test('records input according to the setting at the time when the session was opened', () => {
  const recordedAfter = (first: boolean) => {
    const { join, recording, rules, shell } = startTerminal({ recordInput: first });
    rules.recordInput = !first;
    join('control').connection.typed(Buffer.from('secret'));
    expect(shell.typed).toBe('secret');
    return recording.events;
  };
  expect(recordedAfter(false)).toEqual([]);
  expect(recordedAfter(true)).toEqual([['i', 'secret']]);
});

test('applies only the last of several rapid size changes', () => {
  const { shell, join, recording, clock } = startTerminal();
  const ada = join('control');
  for (let cols = 81; cols <= 90; cols++) ada.connection.resized(cols, 24);
  clock.advance(40);
  ada.connection.resized(90, 24);
  clock.advance(40);
  expect(shell.sizes).toEqual(['81x24', '90x24']);
  expect(recording.events).toEqual([
    ['r', '81x24'],
    ['r', '90x24'],
  ]);
});

test('joins split characters, and shows an incomplete character after a short wait', () => {
  const { shell, join, recording, clock } = startTerminal();
  const ada = join('control');
  shell.says(Uint8Array.of(0x61, 0xe2, 0x82));
  expect(ada.shown).toBe('a');
  shell.says(Uint8Array.of(0xac, 0xf0));
  expect(ada.shown).toBe('a€');
  clock.advance(20);
  expect(Buffer.concat(ada.bytes).toString('hex')).toBe('61e282acf0');
  expect(recording.events).toEqual([
    ['o', 'a'],
    ['o', '€'],
    ['o', '\uFFFD'],
    ['b', '8A=='],
  ]);
  expect(shell.given).toBe(5);
  shell.says(Uint8Array.of(0xc3));
  shell.events.exited({ code: 0, signal: null });
  expect(Buffer.concat(ada.bytes).toString('hex')).toBe('61e282acf0c3');
});

test('records and shows all output before it notifies clients that the session ended', async () => {
  const { shell, join, recording, ends, screen } = startTerminal();
  const ada = join('control');
  const eve = join('view', 'e');
  recording.slow = true;
  shell.says('last');
  shell.events.exited({ code: null, signal: 'SIGHUP' });
  expect(ada.shown).toBe('');
  expect(ends).toEqual([]);
  recording.write();
  await nextTurn();
  expect(ada.seen.slice(1)).toEqual(['last', { type: 'exit', code: null, signal: 'SIGHUP' }]);
  expect([ada.over, eve.over]).toEqual(['closed', 'closed']);
  expect(ends).toMatchObject([
    { end: { status: 'closed', reason: 'the shell ended by SIGHUP' }, bytes: recording.written },
  ]);
  shell.says('nothing more');
  ada.connection.typed(Buffer.from('x'));
  expect([recording.events.length, shell.typed]).toEqual([1, '']);
  screen('');
});

test.each([
  ['without a controlling connection', { reattachSecs: 60 }, 'terminal_closed', 'closed'],
  ['without typed input', { idleLimitSecs: 60 }, 'terminal_idle', 'closed'],
] as const)('terminates a shell %s', async (how, rules, code, status) => {
  const { shell, join, sweep, ends, clock } = startTerminal(rules);
  const ada = join('control');
  const eve = join('view', 'e');
  sweep(59_000);
  if (how === 'without typed input') ada.connection.typed(Buffer.from('x'));
  else ada.connection.left();
  shell.says('goes on');
  sweep(59_999);
  expect(ends).toEqual([]);
  expect(shell.closed).toBeNull();
  clock.advance(1);
  sweep(0);
  await nextTurn();
  expect(ends).toMatchObject([{ end: { status, notice: { code } } }]);
  expect(eve.code).toBe(code);
  expect(shell.closed).not.toBeNull();
});

test('ends the session before the transcript exceeds its maximum size', async () => {
  const { shell, join, recording, ends } = startTerminal({ transcriptLimit: 2000 });
  const ada = join('control');
  for (let n = 0; n < 50; n++) shell.says(`line ${n} ${'x'.repeat(50)}\r\n`);
  await nextTurn();
  expect(recording.written).toBeLessThanOrEqual(2000);
  expect(recording.written).toBeGreaterThan(1800);
  expect([ada.over, ada.code]).toEqual(['closed', 'terminal_full']);
  expect(ends).toMatchObject([{ end: { status: 'closed', notice: { code: 'terminal_full' } } }]);
  expect(shell.closed).not.toBeNull();
  // All output that clients received was recorded.
  expect(recording.events.map(([, data]) => data).join('')).toBe(ada.shown);
});

test('ends the session if output cannot be recorded, without showing that output', async () => {
  const { shell, join, recording, live, ends } = startTerminal();
  const ada = join('control');
  recording.slow = true;
  shell.says('never seen');
  live.unrecorded(new Error('ENOSPC'));
  await nextTurn();
  expect([ada.shown, ada.over, ada.code]).toEqual(['', 'closed', 'terminal_unrecorded']);
  expect(shell.closed).toContain('ENOSPC');
  expect(ends).toHaveLength(1);
  live.unrecorded(new Error('again'));
  shell.events.exited({ code: 0, signal: null });
  await nextTurn();
  expect(ends).toHaveLength(1);
});

test('ends with a recording failure if the last output before the exit cannot be recorded', async () => {
  const { shell, join, recording, live, ends } = startTerminal();
  const ada = join('control');
  recording.slow = true;
  shell.says('last');
  shell.events.exited({ code: 0, signal: null });
  live.unrecorded(new Error('ENOSPC'));
  await nextTurn();
  expect([ada.shown, ada.code]).toEqual(['', 'terminal_unrecorded']);
  expect(ends).toMatchObject([{ end: { notice: { code: 'terminal_unrecorded' } } }]);
});

test('records early shell events after the header', async () => {
  const { live, shell, recording, join, ends } = open();
  shell.says('early');
  shell.events.exited({ code: 3, signal: null });
  live.begin(shell, header);
  expect(recording.events).toEqual([['o', 'early']]);
  expect(join('control').seen.slice(1)).toEqual(['early', { type: 'exit', code: 3, signal: null }]);
  await nextTurn();
  expect(ends).toHaveLength(1);
});

test('closes the shell if the session ended while it was being opened', async () => {
  const { live, shell, recording, ends } = open();
  live.close(ended('terminal_closed', 'the operator was removed'));
  await nextTurn();
  live.begin(shell, header);
  shell.says('x');
  expect([shell.closed, recording.events]).toEqual(['the operator was removed', []]);
  expect(ends).toHaveLength(1);
  const lost = startTerminal();
  lost.shell.events.lost('the link ended');
  lost.live.close(interrupted('again'));
  await nextTurn();
  expect(lost.ends).toMatchObject([{ end: { status: 'interrupted', reason: 'the link ended' } }]);
});

test('builds a screen from the last part of a recording, with the size and modes set before that part', () => {
  const { shell, join, recording, sources, clock } = startTerminal();
  const ada = join('control');
  ada.connection.resized(132, 50);
  clock.advance(40);
  shell.says('\x1b[?1049h\x1b[?2004h');
  for (let n = 0; n < 300; n++) shell.says('x'.repeat(16 * 1024));
  ada.connection.left();
  join('control');
  const source = sources[0] as ScreenSource;
  expect(source).toMatchObject({ to: recording.written, cols: 132, rows: 50, opening: '\x1b[?1049h\x1b[?2004h' });
  expect(source.to - source.from).toBeLessThanOrEqual(1024 * 1024);
  expect(source.to - source.from).toBeGreaterThan(800 * 1024);
  expect(recording.text[source.from - 1]).toBe('\n');
});

test('makes the program redraw the alternate screen, without showing clients the temporary size', async () => {
  const { shell, join, recording, screen, clock } = startTerminal();
  const much = () => {
    for (let n = 0; n < 100; n++) shell.says('x'.repeat(16 * 1024));
  };
  const comes = async (mode: 'control' | 'view') => {
    const client = join(mode);
    shell.sizes = [];
    screen('<screen>');
    await nextTurn();
    const requestedSizes = [...shell.sizes];
    clock.advance(100);
    return { client, requestedSizes, sizes: [...shell.sizes] };
  };
  const first = join('control');
  // The program does not redraw if the screen is complete, or if it shows the main screen.
  shell.says('\x1b[?1049hheading');
  expect((await comes('view')).sizes).toEqual([]);
  shell.says('\x1b[?1049l');
  much();
  expect((await comes('view')).sizes).toEqual([]);

  shell.says('\x1b[?1049hheading');
  much();
  const second = await comes('control');
  expect([first.code, second.requestedSizes, second.sizes]).toEqual([
    'terminal_taken_over',
    ['80x23'],
    ['80x23', '80x24'],
  ]);
  expect(second.client.seen).toEqual([{ type: 'resize', cols: 80, rows: 24 }, '<screen>']);
  expect(recording.events.filter(([kind]) => kind === 'r')).toEqual([]);

  // A size that a client requests during the redraw is applied afterward. Several new connections cause a single
  // redraw.
  join('view');
  join('view');
  shell.sizes = [];
  screen('<screen>');
  await nextTurn();
  second.client.connection.resized(100, 40);
  clock.advance(100);
  expect(shell.sizes).toEqual(['80x23', '80x24', '100x40']);
  expect(recording.events.filter(([kind]) => kind === 'r')).toEqual([['r', '100x40']]);

  // The program does not redraw after the session has ended, or on the main screen.
  join('view');
  shell.says('\x1b[?1049l');
  shell.sizes = [];
  screen('<screen>');
  await nextTurn();
  expect(shell.sizes).toEqual([]);
});

test('builds a screen from shown output while the recording waits for the disk', () => {
  const { shell, join, recording, sources } = startTerminal();
  join('control').connection.left();
  shell.says('shown');
  recording.slow = true;
  // Each of these bytes is recorded as six bytes.
  for (let n = 0; n < 16; n++) shell.says('\x1b'.repeat(16 * 1024));
  join('control');
  expect(sources).toEqual([expect.objectContaining({ to: recording.written })]);
  expect(recording.text.slice(sources[0]?.from)).toContain('shown');
});

test('neither loses nor repeats any byte, and returns all window credit', async () => {
  const step = fc.oneof(
    fc.constantFrom('a', 'żó', '€', '🐢 and more', '\x1b[?1049h').map((text) => ({ kind: 'says' as const, text })),
    fc.constantFrom('write', 'control', 'view', 'leave', 'take', 'stick', 'screen').map((kind) => ({ kind, text: '' })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { recording, shell, join, clock, screen } = startTerminal();
      recording.slow = true;
      recording.write();
      const viewer = join('view', 'v');
      const clients: ReturnType<typeof join>[] = [];
      let said = '';
      for (const { kind, text } of steps) {
        if (kind === 'says') {
          shell.says(text);
          said += Buffer.from(text).toString();
        } else if (kind === 'write') recording.write();
        else if (kind === 'leave') clients.at(-1)?.connection.left();
        else if (kind === 'screen') {
          screen('');
          await nextTurn();
        } else if (kind === 'take') clients.at(-1)?.take();
        else if (kind === 'stick') for (const client of clients) client.stuck = true;
        else clients.push(join(kind as 'control'));
        if (shell.given > Buffer.byteLength(said)) return false;
      }
      clock.advance(20);
      recording.write();
      const last = join('control');
      expect(last.over).toBeNull();
      last.connection.left();
      screen('');
      await nextTurn();
      expect(shell.given).toBe(Buffer.byteLength(said));
      expect(viewer.shown).toBe(said);
      expect(recording.events.map(([, data]) => data).join('')).toBe(said);
      return true;
    }),
  );
});
