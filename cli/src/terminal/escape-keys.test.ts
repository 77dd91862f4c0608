import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EscapeKeys } from './escape-keys.ts';

/** Returns the bytes to send, with commands in angle brackets. A number is a pause in milliseconds. */
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
  ['at the start of the input', ['~', '.'], '<leave>'],
  ['both keys in one read', ['~.'], '<leave>'],
  ['after Enter', ['ls\r', '~', '.'], 'ls\r<leave>'],
  ['not within a line', ['ls ~.'], 'ls ~.'],
  ['not after another key', ['a', '~', '.'], 'a~.'],
  ['two tildes send one', ['~', '~', '.'], '~.'],
  ['another key sends the tilde too', ['~', 'x'], '~x'],
  ['a home directory', ['~/x\r'], '~/x\r'],
  ['detach', ['\r~d'], '\r<detach>'],
  ['help, and then leave', ['~?~.'], '<help><leave>'],
  ['Enter after a tilde starts a line', ['~\r~.'], '~\r<leave>'],
  ['not after a multibyte character', ['é~.'], Buffer.from('é~.').toString('latin1')],
])('forwards or interprets a tilde: %s', (_, pieces, expected) => {
  expect(typed(...pieces)).toBe(expected);
});

test('passes pasted text on unchanged, even after a typed tilde', () => {
  const pasted = `first line of some length, as pastes have\n~.\n~~\n~?`;
  expect(typed('\r', pasted)).toBe(`\r${pasted}`);
  expect(typed('~', pasted)).toBe(`~${pasted}`);
});

test('passes small chunks of a paste on unchanged, and detects keys again afterward', () => {
  const pasted = `first line of some length, as pastes have\n`;
  expect(typed(pasted, '~~~\n', 90, '~.', 90, '\n~~')).toBe(`${pasted}~~~\n~.\n~~`);
  expect(typed(pasted, '~.\r', 150, '~', '.')).toBe(`${pasted}~.\r<leave>`);
});

test('passes all bytes on unchanged if they contain no tilde, for any split', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 100 })), (pieces) => {
      const clean = pieces.map((piece) => piece.map((byte) => (byte === 0x7e ? 0x21 : byte)));
      expect(typed(...clean)).toBe(Buffer.concat(clean).toString('latin1'));
    }),
  );
});
