import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EscapeKeys } from './escape-keys.ts';

/** What is sent, commands in angle brackets. A number is a wait of so many milliseconds. */
function typed(...pieces: (string | Uint8Array | number)[]): string {
  const keys = new EscapeKeys();
  let now = 0;
  return pieces
    .flatMap((piece) => {
      if (typeof piece !== 'number') return keys.feed(Buffer.from(piece as string), now);
      now += piece;
      return [];
    })
    .map((each) => (each.kind === 'bytes' ? Buffer.from(each.bytes).toString('latin1') : `<${each.kind}>`))
    .join('');
}

test.each([
  ['at the very beginning', ['~', '.'], '<leave>'],
  ['in one go', ['~.'], '<leave>'],
  ['after Enter', ['ls\r', '~', '.'], 'ls\r<leave>'],
  ['not within a line', ['ls ~.'], 'ls ~.'],
  ['not after a key that went on', ['a', '~', '.'], 'a~.'],
  ['two are one', ['~', '~', '.'], '~.'],
  ['another key sends both', ['~', 'x'], '~x'],
  ['a home directory', ['~/x\r'], '~/x\r'],
  ['detach', ['\r~d'], '\r<detach>'],
  ['help, and then leave', ['~?~.'], '<help><leave>'],
  ['Enter after a tilde begins a line', ['~\r~.'], '~\r<leave>'],
  ['a tilde within bytes of UTF-8 before it', ['é~.'], Buffer.from('é~.').toString('latin1')],
])('%s', (_, pieces, expected) => {
  expect(typed(...pieces)).toBe(expected);
});

test('what is pasted is text, also after a tilde that was typed', () => {
  const pasted = `first line of some length, as pastes have\n~.\n~~\n~?`;
  expect(typed('\r', pasted)).toBe(`\r${pasted}`);
  expect(typed('~', pasted)).toBe(`~${pasted}`);
});

test('small pieces of a paste are text too, and keys are keys again a moment later', () => {
  const pasted = `first line of some length, as pastes have\n`;
  expect(typed(pasted, '~~~\n', 90, '~.', 90, '\n~~')).toBe(`${pasted}~~~\n~.\n~~`);
  expect(typed(pasted, '~.\r', 150, '~', '.')).toBe(`${pasted}~.\r<leave>`);
});

test('without a tilde every byte arrives as it was, however it is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 100 })), (pieces) => {
      const clean = pieces.map((piece) => piece.map((byte) => (byte === 0x7e ? 0x21 : byte)));
      expect(typed(...clean)).toBe(Buffer.concat(clean).toString('latin1'));
    }),
  );
});
