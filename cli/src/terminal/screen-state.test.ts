import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ScreenState } from './screen-state.ts';

const after = (...pieces: string[]): string => {
  const screen = new ScreenState();
  for (const piece of pieces) screen.feed(Buffer.from(piece));
  return screen.restore();
};

test('restores nothing if no terminal setting was changed', () => {
  expect(after('plain text, grün 東京\r\n\u001b[1;31mred\u001b[0m\u001b[2J\u001b[H')).toBe('');
  expect(after('\u001b[?1049h\u001b[?2004h\u001b[?25l', 'x\u001b[?25h\u001b[?2004l\u001b[?1049l')).toBe('');
});

test('restores, after a lost connection, the modes that vim set, the alternate screen last', () => {
  const undo = after(
    '\u001b[?1049h\u001b[22;0;0t\u001b[?1h\u001b=\u001b[?2004h\u001b[1;40r\u001b[?12h\u001b[?25l\u001b[?1006;1000h\u001b[>4;2m\u001b[2 q\u001b[34m',
  );
  for (const part of [
    '\u001b[?1l',
    '\u001b[?2004l',
    '\u001b[?25h',
    '\u001b[?1006l',
    '\u001b[?1000l',
    '\u001b>',
    '\u001b[>4m',
    '\u001b[0 q',
    '\u001b[0m',
    '\u001b[r',
  ])
    expect(undo).toContain(part);
  expect(undo.indexOf('\u001b[?1049l')).toBeGreaterThan(undo.indexOf('\u001b[?2004l'));
});

test('aborts an incomplete sequence before it restores modes', () => {
  expect(after('\u001b[?1049h', '\u001b]0;half')).toMatch(/^\u0018.*\u001b\[\?1049l/);
});

test('restores nothing after a full reset, and restores only once', () => {
  expect(after('\u001b[?1049h\u001b[?25l\u001bc')).toBe('');
  const screen = new ScreenState();
  screen.feed(Buffer.from('\u001b[?25l'));
  expect(screen.restore()).toBe('\u001b[?25h');
  expect(screen.restore()).toBe('');
});

test('restores exactly the modes that differ from the default, for any split', () => {
  const modes = ['1', '5', '6', '7', '25', '47', '1000', '1003', '1006', '1004', '1049', '2004', '2026'];
  const change = fc.record({ mode: fc.constantFrom(...modes), on: fc.boolean(), text: fc.string({ maxLength: 3 }) });
  fc.assert(
    fc.property(fc.array(change), fc.integer({ min: 1, max: 9 }), (changes, size) => {
      const bytes = Buffer.from(
        changes.map(({ mode, on, text }) => `\u001b[?${mode}${on ? 'h' : 'l'}${text}`).join(''),
      );
      const screen = new ScreenState();
      for (let at = 0; at < bytes.length; at += size) screen.feed(bytes.subarray(at, at + size));
      const state = new Map(changes.map(({ mode, on }) => [mode, on]));
      const expected = [...state].flatMap(([mode, on]) => {
        const rest = mode === '7' || mode === '25';
        return on === rest ? [] : [`\u001b[?${mode}${rest ? 'h' : 'l'}`];
      });
      const undone: string[] = screen.restore().match(/\u001b\[\?\d+[hl]/g) ?? [];
      expect(undone.toSorted()).toEqual(expected.toSorted());
    }),
  );
});
