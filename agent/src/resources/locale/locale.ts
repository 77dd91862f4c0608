import { HostFailure } from '../../host/failure.ts';
import { archive, charsetOf, generateLocale, isBuiltIn, readSupported, removeLocale } from '../../host/locales.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { changedFields, type Machine } from '../provider/provider.ts';
import { editLines, type LinesBefore, type PlacedLine, restoredPlaced } from '../text-edit/placed-lines.ts';
import { diffLocale, diffLocaleRemoval, wantedLang } from './diff.ts';
import { declaredEntry, declaredLang, entriesOf, langLines, localeGen } from './lines.ts';
import {
  type Declared,
  isAbsent,
  type LocaleBefore,
  locales,
  look,
  type SeenLocale,
  settingsPath,
  settingsPaths,
} from './seen.ts';

/** A generated locale with its line in /etc/locale.gen, and the LANG of new sessions. */
export const locale = defineProvider<'locale', SeenLocale, LocaleBefore>({
  type: 'locale',
  fields: { name: 'text', charset: 'text?', default: 'boolean?', ensure: 'text?' },
  watched: () => [localeGen, archive, ...settingsPaths],

  check({ body: { name, charset, default: isDefault, ensure } }) {
    // The name becomes an argument of localedef and a word in two files.
    if (!/^[A-Za-z][A-Za-z0-9_.-]*(@[a-z]+)?$/.test(name) || name.length > 100)
      throw new HostFailure(`${JSON.stringify(name)} is not the name of a locale`);
    if (charset != null && !/^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/.test(charset))
      throw new HostFailure(`${JSON.stringify(charset)} is not the name of a character set`);
    if (ensure !== 'absent') return;
    if (isBuiltIn(name)) throw new HostFailure(`${name} is part of the C library, so it cannot be absent`);
    if (isDefault === true) throw new HostFailure('a locale that is absent cannot be the default');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffLocale,

  async remember(resource, { entries, list, available, lang, settings }, difference, before) {
    const managesLang = resource.body.default != null || changedFields(difference).has('default');
    return {
      entries: before?.entries ?? linesBefore(entries, list.type === 'absent'),
      available: before?.available ?? available,
      lang: before?.lang ?? (managesLang ? linesBefore(lang, settings.type === 'absent') : null),
    };
  },

  // LANG is set last and restored first, so that it never names a locale that does not exist.
  async apply(resource, seen, difference, machine) {
    const changing = changedFields(difference);
    const { name } = resource.body;
    const charset = isAbsent(resource) ? null : seen.charset;
    const setLang = async () => {
      const wanted = wantedLang(resource, seen) ?? null;
      if (changing.has('default')) await editLang((lines) => declaredLang(wanted, lines), machine);
    };
    if (isAbsent(resource)) await setLang();
    if (changing.has('entry'))
      await editLines(localeGen, machine, (lines) => declaredEntry(name, charset, lines), { missingDirectory });
    if (changing.has('available')) await setAvailable(resource, seen, !isAbsent(resource), machine);
    if (!isAbsent(resource)) await setLang();
    return {};
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: diffLocaleRemoval,

  async remove(resource, before, seen, difference, machine) {
    const changing = changedFields(difference);
    const { name } = resource.body;
    const { lang } = before;
    if (changing.has('default') && lang !== null)
      await editLang((lines) => restoredPlaced(langLines(lines), lang, lines), machine, lang);
    if (changing.has('entry'))
      await editLines(localeGen, machine, (lines) => restoredPlaced(entriesOf(name, lines), before.entries, lines), {
        missingDirectory,
      });
    if (changing.has('available')) await setAvailable(resource, seen, before.available, machine);
    return {};
  },
});

const missingDirectory = 'the directory of the file does not exist; install the package `locales`';

const linesBefore = (lines: PlacedLine[], made: boolean): LinesBefore =>
  lines.length === 0 ? { was: 'absent', made } : { was: 'present', lines };

const editLang = (
  change: Parameters<typeof editLines>[2],
  machine: Machine,
  before: LinesBefore = { was: 'absent', made: false },
): Promise<void> =>
  editLines(settingsPath(), machine, change, {
    removesEmpty: before.was === 'absent' && before.made,
    missingDirectory,
  });

async function setAvailable(
  { body: { name } }: Declared,
  { charset }: SeenLocale,
  isAvailable: boolean,
  machine: Machine,
): Promise<void> {
  const known = charset ?? charsetOf(name, readSupported()) ?? 'UTF-8';
  const current = await machine.database(locales);
  machine.stale(locales);
  if (isAvailable) await generateLocale({ name, charset: known }, machine);
  else await removeLocale({ name, charset: known }, current, machine);
  machine.stale(locales);
}
