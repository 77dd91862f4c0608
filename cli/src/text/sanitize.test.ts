import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { sanitise, sanitiseLine, toJson } from './sanitize.ts';

const escapes = {
  'a colour': '\u001b[31mred\u001b[0m',
  'a window title': '\u001b]0;owned\u0007',
  'an 8-bit CSI': '\u009b2J',
  'a clipboard write': '\u001b]52;c;cm0gLXJm\u001b\\',
  'a bidi override': 'user\u202etxt.exe',
  'a bidi isolate': '\u2066web\u2069',
  'a carriage return that overwrites': 'rm -rf /\rls       ',
  'a backspace': 'no\b\byes',
  'text without width': 'web\u200b-1',
  'tag characters': 'web\u{e0041}',
  'a lone surrogate': 'a\ud800b',
};

test.each(Object.entries(escapes))('prints %s as a visible escape', (_, text) => {
  for (const clean of [sanitise(text), sanitiseLine(text)]) {
    expect(clean).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
    expect(clean).toMatch(/\\x[0-9a-f]{2}|\\u\{[0-9a-f]+\}/);
  }
});

test('keeps plain text, other scripts, and emoji unchanged', () => {
  for (const text of ['web-1', 'Größe', '東京', 'שלום', 'naïve 👍🏽']) expect(sanitiseLine(text)).toBe(text);
});

test('keeps newlines and tabs in multi-line text, and escapes them in a single line', () => {
  expect(sanitise('a\tb\r\nc')).toBe('a\tb\nc');
  expect(sanitiseLine('a\tb\nc')).toBe('a\\tb\\nc');
});

test('removes every character that a terminal interprets from any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), (text) => {
      expect(sanitiseLine(text)).not.toMatch(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/u);
      expect(sanitise(text).replace(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/u);
    }),
  );
});

test('keeps the JSON value and contains no character that a terminal interprets', () => {
  fc.assert(
    fc.property(fc.json(), fc.string({ unit: codePoint }), (json, text) => {
      const value = { json: JSON.parse(json), text };
      const written = toJson(value);
      expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(written.replace(/\n/g, '')).not.toMatch(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/u);
    }),
  );
});
