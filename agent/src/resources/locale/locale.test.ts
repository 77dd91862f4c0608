import { canonicalLocale, parseModule, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { archivedNames, charsetOf } from '../../host/locales.ts';
import { joinText, splitText } from '../text-edit/lines.ts';
import { placedLine } from '../text-edit/placed-lines.ts';
import { diffLocale, diffLocaleRemoval } from './diff.ts';
import { activeEntries, declaredEntry, declaredLang, langIn } from './lines.ts';
import { locale } from './locale.ts';
import type { Declared, LocaleBefore, SeenLocale } from './seen.ts';

type Body = ResourceBodies['locale'];
const declared = (fields: Partial<Body> = {}) =>
  ({
    ...{ type: 'locale', identity: 'de_DE.UTF-8', key: 'locale:de_DE.utf8', sensitive_fields: [] },
    body: { name: 'de_DE.UTF-8', ...fields },
  }) as unknown as Declared;
const linesOf = (text: string) => {
  const lines = splitText(text);
  return lines.map((_, index) => placedLine(lines, index));
};
const file = { type: 'file' as const, kind: null, ownership: { uid: 0, gid: 0, mode: 0o644 } };
const seen = (fields: Partial<SeenLocale> = {}): SeenLocale => ({
  ...{ list: file, entries: [], charset: 'UTF-8', available: false, archived: false },
  ...{ settings: file, lang: [], isEmptySettings: false, isLangOfOther: false, missing: null },
  ...fields,
});
const entries = linesOf('de_DE.UTF-8 UTF-8\n');
const there = { entries, available: true, archived: true };
const diff = (body: Partial<Body>, now: Partial<SeenLocale>) =>
  diffLocale(declared(body), seen(now), { purpose: 'apply' });
const fields = ({ changes }: { changes: { field: string }[] }) => changes.map(({ field }) => field);

test('compares names as glibc does', () => {
  expect(canonicalLocale('de_DE.UTF-8')).toBe('de_DE.utf8');
  expect(canonicalLocale('de_DE.ISO-8859-15@euro')).toBe('de_DE.iso885915@euro');
  expect(canonicalLocale('de_DE.8859-15')).toBe('de_DE.iso885915');
  expect(canonicalLocale('de_DE@euro')).toBe('de_DE@euro');
});

test('finds the character set in the name or in the list of supported locales', () => {
  const supported = 'de_DE ISO-8859-1\nde_DE@euro ISO-8859-15\n';
  expect(charsetOf('de_DE.utf8', supported)).toBe('UTF-8');
  expect(charsetOf('ja_JP.EUC-JP', supported)).toBe('EUC-JP');
  expect(charsetOf('de_DE@euro', supported)).toBe('ISO-8859-15');
  expect(charsetOf('de_DE', null)).toBeNull();
});

test('removes all names of a locale from the archive', () => {
  const archived = ['de_DE', 'de_DE.iso88591', 'de_DE.utf8', 'deutsch', 'fr_FR.utf8', 'french'];
  const aliases = '# comment\ndeutsch\t\tde_DE.ISO-8859-1\nfrench fr_FR.ISO-8859-1\n';
  expect(archivedNames({ name: 'de_DE', charset: 'ISO-8859-1' }, archived, aliases)).toEqual([
    ...['de_DE', 'de_DE.iso88591', 'deutsch'],
  ]);
  expect(archivedNames({ name: 'de_DE.UTF-8', charset: 'UTF-8' }, archived, aliases)).toEqual(['de_DE.utf8']);
});

test('removes or adds the comment mark of an entry, or adds an entry at the end', () => {
  const edit = (text: string, charset: string | null = 'UTF-8') =>
    joinText(declaredEntry('de_DE.UTF-8', charset, splitText(text)));
  expect(edit('# de_AT UTF-8\n# de_DE.UTF-8 UTF-8\n# end\n')).toBe('# de_AT UTF-8\nde_DE.UTF-8 UTF-8\n# end\n');
  expect(edit('# Locales\n')).toBe('# Locales\nde_DE.UTF-8 UTF-8\n');
  expect(edit('de_DE.utf8  UTF-8\n')).toBe('de_DE.utf8  UTF-8\n');
  expect(edit('de_DE.UTF-8 ISO-8859-1\n#de_DE.UTF-8 UTF-8\n')).toBe('# de_DE.UTF-8 ISO-8859-1\nde_DE.UTF-8 UTF-8\n');
  expect(edit('de_DE.UTF-8 UTF-8\nde_DE.UTF-8 UTF-8\n')).toBe('de_DE.UTF-8 UTF-8\n# de_DE.UTF-8 UTF-8\n');
  expect(edit('de_DE.UTF-8 UTF-8\nfr_FR.UTF-8 UTF-8\n', null)).toBe('# de_DE.UTF-8 UTF-8\nfr_FR.UTF-8 UTF-8\n');
  expect(activeEntries(splitText('# de_DE.UTF-8 UTF-8\n'))).toBeNull();
});

test('reads and sets LANG in one line, and keeps all other lines', () => {
  const edit = (text: string, name: string | null) => joinText(declaredLang(name, splitText(text)));
  expect(langIn(splitText('LANG="C.UTF-8"\nLC_ALL=C\n'))).toBe('C.UTF-8');
  expect(langIn(splitText('LANG=C\n export LANG=de_DE.UTF-8\n#LANG=x\n'))).toBe('de_DE.UTF-8');
  expect(langIn(splitText('LANGUAGE=de\n'))).toBeNull();
  expect(edit('# x\nLANG=C\nLANGUAGE=de\nLANG=D\n', 'de_DE.UTF-8')).toBe('# x\nLANG=de_DE.UTF-8\nLANGUAGE=de\n');
  expect(edit('', 'de_DE.UTF-8')).toBe('LANG=de_DE.UTF-8\n');
  expect(edit('LANG=C\nLC_TIME=C\n', null)).toBe('LC_TIME=C\n');
});

test('reports the entry, the locale, and the default as separate fields', () => {
  expect(diff({ default: true }, { lang: linesOf('LANG=C\n') })).toMatchObject({
    action: 'create',
    changes: [
      { field: 'entry', from: null, to: 'de_DE.UTF-8 UTF-8' },
      { field: 'available', from: 'no', to: 'yes' },
      { field: 'default', from: 'C', to: 'de_DE.UTF-8' },
    ],
  });
  expect(diff({}, there).action).toBe('none');
  expect(fields(diff({}, { ...there, available: false }))).toEqual(['available']);
  expect(fields(diff({}, { ...there, entries: linesOf('# de_DE.UTF-8 UTF-8\n') }))).toEqual(['entry']);
  expect(diff({ default: true }, { ...there, lang: linesOf('LANG=de_DE.utf8\n') }).action).toBe('none');
  expect(fields(diff({ default: true }, { ...there, lang: linesOf('LANG=C\nLANG=de_DE.UTF-8\n') }))).toEqual([
    'default',
  ]);
  expect(diff({ default: false }, { ...there, lang: linesOf('LANG=C\n') }).action).toBe('none');
  expect(diff({ default: false }, { ...there, lang: linesOf('LANG=de_DE.UTF-8\n') }).changes).toEqual([
    { field: 'default', from: 'de_DE.UTF-8', to: null },
  ]);
});

test('keeps a locale that a package provides, and reports that a locale declared absent is still the default', () => {
  expect(diff({ ensure: 'absent' }, { available: true }).action).toBe('none');
  expect(diff({ ensure: 'absent' }, { ...there, lang: linesOf('LANG=de_DE.utf8\n') })).toMatchObject({
    action: 'remove',
    changes: [{ field: 'entry' }, { field: 'available', from: 'yes', to: 'no' }],
    message: expect.stringContaining('is still de_DE.UTF-8'),
  });
});

test('waits for the package with the locale definitions only if it must generate a locale', () => {
  const missing = 'install the package `locales`';
  expect(diff({}, { missing }).awaits).toEqual([{ kind: 'programs', message: missing }]);
  expect(diff({ name: 'C.UTF-8', default: true }, { available: true, missing }).awaits).toBeUndefined();
});

test('restores the entry, the locale, and LANG, unless another resource now declares the default', () => {
  const before: LocaleBefore = {
    entries: { was: 'present', lines: linesOf('# de_DE.UTF-8 UTF-8\n') },
    available: false,
    lang: { was: 'absent', made: true },
  };
  const lang = linesOf('LANG=de_DE.UTF-8\n');
  expect(fields(diffLocaleRemoval(declared(), before, seen({ ...there, lang })))).toEqual([
    ...['entry', 'available', 'default'],
  ]);
  expect(fields(diffLocaleRemoval(declared(), before, seen({ ...there, lang, isLangOfOther: true })))).toEqual([
    ...['entry', 'available'],
  ]);
  const restored = { entries: linesOf('# de_DE.UTF-8 UTF-8\n') };
  expect(diffLocaleRemoval(declared(), before, seen(restored)).action).toBe('none');
  expect(fields(diffLocaleRemoval(declared(), before, seen({ ...restored, isEmptySettings: true })))).toEqual([
    'default',
  ]);
});

test('refuses a list of locales that is a link', () => {
  const list = { type: 'symlink' as const, kind: 'a symbolic link to /x', ownership: null };
  expect(() => diff({}, { list })).toThrow('which the agent does not follow');
  expect(diffLocale(declared(), seen({ list }), { purpose: 'drift' }).changes).toMatchObject([{ field: 'type' }]);
});

test.each<[string, Partial<Body>, string]>([
  ['a name that is an option', { name: '--prefix=/x' }, 'is not the name of a locale'],
  ['a name with a slash', { name: '../x' }, 'is not the name of a locale'],
  ['a character set with a slash', { charset: '/x' }, 'is not the name of a character set'],
  ['the absence of a locale of the C library', { name: 'C.UTF-8', ensure: 'absent' }, 'part of the C library'],
  ['an absent locale as the default', { default: true, ensure: 'absent' }, 'cannot be the default'],
])('refuses %s', (_what, body, message) => {
  expect(() => locale.check(declared(body))).toThrow(message);
});

test.each(['-i', 'https://example.org', 'de_DE.UTF-8\nen_US.UTF-8', 'de_DE UTF-8', '', 'de/DE'])(
  'refuses %j as a name on upload',
  (name) => {
    const resources = [{ id: 'it', resource: { locale: { name } } }];
    const parsed = parseModule(JSON.stringify({ name: 'm', supports: [{ platform: 'linux' }], resources }));
    expect(parsed.ok ? [] : parsed.faults.map(({ message }) => message)).toEqual([
      expect.stringContaining('must be the name of a locale'),
    ]);
  },
);
