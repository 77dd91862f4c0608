import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { PlainText, ReplayFilter } from './replay-filter.ts';

const shown = (...pieces: string[]): string => {
  const filter = new ReplayFilter();
  return pieces.map((piece) => filter.feed(piece)).join('');
};

const hostile = {
  'a character a thousand million times (REP)': '\u001b[1000000000b',
  'a question for the cursor (DSR)': '\u001b[6n',
  'a question for the terminal (DA)': '\u001b[c',
  'a second question for the terminal (DA2)': '\u001b[>c',
  DECID: '\u001bZ',
  'an 8-bit DA': '\u009bc',
  'a question for a setting (DECRQSS)': '\u001bP$qm\u001b\\',
  'a question for a mode (DECRQM)': '\u001b[?2004$p',
  'a question for the name (XTVERSION)': '\u001b[>q',
  'a question for the title': '\u001b[21t',
  'the answerback (ENQ)': '\u0005',
  'a question for a colour': '\u001b]11;?\u0007',
  'a question for the keyboard': '\u001b[?u',
  'a checksum of the screen': '\u001b[1;1;1;1;9;9*y',
  'the clipboard': '\u001b]52;c;cm0gLXJm\u0007',
  'an 8-bit clipboard': '\u009d52;c;cm0gLXJm\u009c',
  'a title': '\u001b]0;owned\u001b\\',
  'a link': '\u001b]8;;file:///etc/passwd\u001b\\',
  'a file to save': '\u001b]1337;File=name=eA==:eA==\u0007',
  'the printer': '\u001b[5i',
  'a picture': '\u001bPq#0;2;0;0;0~\u001b\\',
  'keys that are defined': '\u001bP0;1|17/72\u001b\\',
  'the mouse': '\u001b[?1003h\u001b[?1006h',
  'pastes and focus reported': '\u001b[?2004;1004h',
  'other keys': '\u001b[>4;2m\u001b[>1u\u001b=',
  'a locked keyboard': '\u001b[2h',
  'a window that is resized': '\u001b[8;1;1t\u001b[?3h',
  'another character set for all': '\u001b%@',
  'a message to the window manager': '\u001b^x\u001b\\\u001b_x\u001b\\\u001bXx\u001b\\',
  'the mouse in between (highlighting)': '\u001b[1;2;3;4;5T',
  'a shape of the cursor that is two': '\u001b[; q',
  'a gentle reset with a number': '\u001b[5!p',
};

test.each(Object.entries(hostile))('blocks %s, whole or in chunks', (_, sequence) => {
  expect(shown(`a${sequence}b`)).toBe('ab');
  expect(shown('a', ...sequence, 'b')).toBe('ab');
  // Terminals execute a sequence even if it contains a control character.
  expect(shown(`a${sequence.replace('\u001b[', '\u001b[\u0000')}b`)).toBe('ab');
});

test('passes drawing sequences through unchanged', () => {
  const screen =
    '\u001b[?1049h\u001b[22;1H\u001b[2J\u001b[38;2;1;2;3mgrün 東京 👍🏽\u001b[0m\r\n\tx\b\u001b[1;24r\u001b[3L\u001b[?25l\u001b[?7h\u001b(0qqq\u001b(B\u001b7\u001b8\u001bM\u001b[4 q';
  expect(shown(screen)).toBe(screen);
  expect(shown(...screen)).toBe(screen);
});

test('passes only display modes if a sequence sets several modes', () => {
  expect(shown('\u001b[?1049;2004;25h')).toBe('\u001b[?1049;25h');
});

/** Control sequences that may reach a terminal. Any other escape character is an error. */
const allowed =
  /\u001b(?:[78DEHMc]|[()*+][0-9A-Z]|#[34568]|\[\??[\d:;]*[@A-Z`abdefgmrsu]|\[4[hl]|\[\?(?:5|6|7|12|25|45|47|69|1047|1048|1049)(?:;(?:5|6|7|12|25|45|47|69|1047|1048|1049))*[hl]|\[\d* q|\[!p)/g;

const pieces = fc.array(
  fc.oneof(
    fc.constantFrom(...Object.values(hostile)),
    fc.constantFrom(
      '\u001b',
      '\u001b[',
      '\u001b]',
      '\u001bP',
      '\u009b',
      '\u009d',
      '\u0090',
      '\u001b\\',
      '\u009c',
      '\u0007',
      '\u0018',
      '?',
      '>',
      '$',
      ' ',
      ';',
      '6n',
      'c',
      'q',
      't',
      'h',
      'm',
      '52;c;',
      '1',
    ),
    fc.string({ unit: codePoint, maxLength: 4 }),
  ),
);

test('passes only allowed control sequences, for any recording', () => {
  fc.assert(
    fc.property(pieces, (all) => {
      const text = shown(...all);
      const rest = text.replace(allowed, '');
      expect(rest).not.toMatch(/[\u0000-\u0006\u0010-\u001f\u007f-\u009f]/);
      for (const [sequence] of text.matchAll(allowed)) expect(sequence).not.toMatch(/^\u001b\[\??[\d:;]*[cnt]$/);
    }),
    { numRuns: 2000 },
  );
});

test('returns the same output for any split of the input', () => {
  fc.assert(
    fc.property(pieces, (all) => {
      expect(shown(...all)).toBe(shown(all.join('')));
    }),
  );
});

test('converts output to plain text: keeps lines, and removes everything that a terminal interprets', () => {
  const plain = new PlainText();
  expect(plain.feed('\u001b[1mone\u001b[0m\r\ntwo\r\r\n10%\r')).toBe('one\ntwo\n10%');
  expect(plain.feed('20%\r')).toBe('\n20%');
  expect(plain.feed('\n\tend')).toBe('\n\tend');
  // Shells with bracketed paste write this sequence after each command.
  expect(new PlainText().feed('$ ls\r\n\u001b[?2004l\rfile\r\n')).toBe('$ ls\nfile\n');
  fc.assert(
    fc.property(pieces, (all) => {
      const text = new PlainText();
      expect(all.map((piece) => text.feed(piece)).join('')).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    }),
  );
});
