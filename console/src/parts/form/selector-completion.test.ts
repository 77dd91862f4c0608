import { parseSelector } from '@muster/protocol/selector';
import { describe, expect, test } from 'vitest';
import { completionAt, quoted, type SelectorVocabulary } from './selector-completion.ts';

const words: Record<string, string[]> = {
  role: ['web', 'database', 'webmail'],
  site: ['paris', 'new york'],
  'attr.distro': ['debian', 'ubuntu'],
};
const vocabulary: SelectorVocabulary = {
  keys: () => Object.keys(words).map((value) => ({ value, count: 3 })),
  values: (key) => (words[key] ?? []).map((value) => ({ value, count: 1 })),
};

/** @param text selector, with `|` at the cursor position */
const at = (text: string) => completionAt(text.replace('|', ''), text.indexOf('|'), vocabulary);
const labels = (text: string) => at(text)?.options.map(({ label }) => label);

/** Returns the text after the first option is accepted. */
function taken(text: string): string {
  const completion = at(text);
  const written = text.replace('|', '');
  const { from = 0, to = 0, options = [] } = completion ?? {};
  return written.slice(0, from) + options[0]?.insert + written.slice(to);
}

describe('completion of a selector', () => {
  test.each([
    ['|', ['role', 'site', 'attr.distro']],
    ['ro|', ['role', 'attr.distro']],
    ['dist|', ['attr.distro']],
    ['role=web |', ['role', 'site', 'attr.distro']],
    ['!si|', ['site']],
    ['role=|', ['web', 'database', 'webmail']],
    ['role=w|', ['web', 'webmail']],
    ['role!=base|', ['database']],
    ['role in (|', ['web', 'database', 'webmail']],
    ['role in (web,d|', ['database']],
    ['role notin ( web , |', ['web', 'database', 'webmail']],
    ['attr.distro=u|', ['ubuntu']],
    ['site="new |', ['new york']],
    ['unknown=|', []],
  ])('suggests completions for %s', (text, expected) => {
    expect(labels(text)).toEqual(expected);
  });

  test('suggests operators after a complete key', () => {
    expect(labels('role|')).toEqual(['=', '!=', 'in (…)', 'notin (…)', 'exists']);
  });

  test.each([
    ['ro|', 'role'],
    ['ro|le', 'role'],
    ['role|', 'role='],
    ['role=w|', 'role=web '],
    ['site=n|', 'site="new york" '],
    ['site="n|', 'site="new york" '],
    ['role in (web,d|', 'role in (web,database'],
    ['!ro|', '!role '],
  ])('completes %s to %s', (text, expected) => {
    expect(taken(text)).toBe(expected);
  });

  test('quotes values so that they parse to the same value', () => {
    for (const value of ['web', 'two words', 'a"b\\c', '', 'x,y', 'a=b']) {
      const parsed = parseSelector(`k=${quoted(value)}`);
      expect(parsed).toMatchObject({ ok: true, selector: { terms: [{ values: [value] }] } });
    }
  });
});
