import type { FieldChange } from '@muster/protocol';
import { canonicalLocale } from '@muster/protocol/module';
import { isBuiltIn } from '../../host/locales.ts';
import {
  type Circumstances,
  type Difference,
  presenceDrift,
  restoring,
  typeDrift,
  withChanges,
} from '../provider/provider.ts';
import type { LinesBefore } from '../text-edit/placed-lines.ts';
import { bitsLost, notAFile, type SeenText, shown } from '../text-edit/text-file.ts';
import { activeEntries, langIn, localeGen } from './lines.ts';
import { type Declared, inFile, isAbsent, type LocaleBefore, type SeenLocale, settingsPath } from './seen.ts';

/** Returns the value that LANG must have; null for none, and `undefined` if the resource does not manage it. */
export function wantedLang({ body }: Declared, { lang }: Pick<SeenLocale, 'lang'>): string | null | undefined {
  const { name, default: isDefault } = body;
  if (isDefault == null) return undefined;
  const current = langIn(lang);
  const isCurrent = current !== null && canonicalLocale(current) === canonicalLocale(name);
  if (isDefault) return isCurrent && lang.length === 1 ? current : name;
  return isCurrent ? null : current;
}

/** @throws HostFailure if the path is not a file */
function expectFile(resource: Declared, path: string, seen: Omit<SeenText, 'content'>): void {
  if (seen.type !== 'file' && seen.type !== 'absent') throw notAFile(inFile(resource, path), seen);
}

function entryChange(resource: Declared, { entries, charset, list }: SeenLocale): FieldChange[] {
  if (isBuiltIn(resource.body.name)) return [];
  const from = activeEntries(entries);
  if (isAbsent(resource)) return from === null ? [] : [{ field: 'entry', from: shown(from), to: null }];
  const active = from?.split(', ') ?? [];
  if (active.length === 1 && active[0]?.endsWith(` ${charset}`)) return [];
  const to = `${resource.body.name} ${charset ?? ''}`.trimEnd();
  return [{ field: 'entry', from: from && shown(from), to }, ...bitsLost(list)];
}

const availability = (isAvailable: boolean): string => (isAvailable ? 'yes' : 'no');

export function diffLocale(
  resource: Declared,
  seen: SeenLocale,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name } = resource.body;
  const absent = isAbsent(resource);
  const odd = [seen.list, seen.settings].find(({ type }) => type !== 'file' && type !== 'absent');
  if (odd !== undefined && purpose === 'drift')
    return absent ? presenceDrift() : typeDrift({ type: odd.type as 'symlink' }, 'file');
  if (!isBuiltIn(name)) expectFile(resource, localeGen, seen.list);
  const changes = entryChange(resource, seen);
  // A locale outside the archive belongs to a package, such as locales-all.
  const canChange = absent ? seen.archived : true;
  if (seen.available === absent && canChange)
    changes.push({ field: 'available', from: availability(seen.available), to: availability(!absent) });
  const lang = langIn(seen.lang);
  const wanted = wantedLang(resource, seen);
  if (wanted !== undefined) {
    expectFile(resource, settingsPath(), seen.settings);
    if (wanted !== lang || (wanted !== null && seen.lang.length > 1 && resource.body.default === true))
      changes.push({ field: 'default', from: lang && shown(lang), to: wanted }, ...bitsLost(seen.settings));
  }
  const message =
    absent && wanted === undefined && lang !== null && canonicalLocale(lang) === canonicalLocale(name)
      ? `LANG in ${settingsPath()} is still ${name}; declare another default, or \`default: false\``
      : undefined;
  const needs = !absent && !isBuiltIn(name) && changes.some(({ field }) => field === 'entry' || field === 'available');
  const awaits = [needs && seen.missing !== null ? { kind: 'programs' as const, message: seen.missing } : null];
  return withChanges(absent ? 'remove' : seen.available ? 'update' : 'create', changes, { awaits, message });
}

const textsOf = (lines: readonly { text: string }[]): string => lines.map(({ text }) => text).join('\n');
const linesBefore = (before: LinesBefore) => (before.was === 'absent' ? [] : before.lines);

export function diffLocaleRemoval(resource: Declared, before: LocaleBefore, seen: SeenLocale): Difference {
  const changes: FieldChange[] = [];
  const entries = linesBefore(before.entries);
  if (!isBuiltIn(resource.body.name) && seen.list.type !== 'absent') {
    expectFile(resource, localeGen, seen.list);
    if (textsOf(seen.entries) !== textsOf(entries)) {
      const [from, to] = [activeEntries(seen.entries), activeEntries(entries)];
      changes.push({ field: 'entry', from: from && shown(from), to: to && shown(to) }, ...bitsLost(seen.list));
    }
  }
  const isOwn = before.available ? seen.missing === null : seen.archived;
  if (seen.available !== before.available && isOwn)
    changes.push({ field: 'available', from: availability(seen.available), to: availability(before.available) });
  if (before.lang !== null && !seen.isLangOfOther) {
    expectFile(resource, settingsPath(), seen.settings);
    const lang = linesBefore(before.lang);
    const isLeftEmpty = before.lang.was === 'absent' && before.lang.made && seen.isEmptySettings;
    if (textsOf(seen.lang) !== textsOf(lang) || isLeftEmpty) {
      const [from, to] = [langIn(seen.lang), langIn(lang)];
      changes.push({ field: 'default', from: from && shown(from), to: to && shown(to) }, ...bitsLost(seen.settings));
    }
  }
  return restoring(changes);
}
