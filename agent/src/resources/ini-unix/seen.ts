import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { missingProgram } from '../../host/processes/find-program.ts';
import type { Machine } from '../provider/provider.ts';
import { inBytes, type Position, positionOf, type TextLine } from '../text-edit/lines.ts';
import { isAbsent, linesOf, lookAtText, type SeenText } from '../text-edit/text-file.ts';
import { hasSection, insertionIndex, needsBlankLine, type Place, type Setting, settingsIn } from './ini.ts';

export type IniUnix = ResolvedResource<'ini-unix'>;

export const placeOf = ({ body: { section, key } }: IniUnix): Place => ({
  section: section == null ? null : inBytes(section),
  key: inBytes(key),
});

/** Returns the declared value, encoded as in `TextLine`; null if there is none. */
export const declaredValue = ({ body: { value } }: IniUnix): string | null => (value == null ? null : inBytes(value));

export interface SeenSetting extends SeenText {
  found: Setting | null;
  /** Position of the line, or of the gap in which it is inserted. */
  position: Position;
  hasSection: boolean;
  /** Whether a new section needs an empty line above. */
  needsBlankLine: boolean;
  /** The program that `validate` would run, if it is missing. */
  missingProgram?: string;
  /** For a removal, the removed and the restored line. Null if nothing has to be restored. */
  restored: { from: string | null; to: string | null; diff: string | null } | null;
}

/**
 * Returns the line with the setting; null if there is none.
 * @throws HostFailure if several lines contain it, or if its value continues on the next line
 */
export function settingIn(resource: IniUnix, lines: readonly TextLine[]): Setting | null {
  const { path, section, key } = resource.body;
  const settings = settingsIn(lines, placeOf(resource));
  const where = `${section == null ? 'above the first section' : `in section [${section}]`} of ${path}`;
  if (settings.length > 1) {
    const numbers = settings.slice(0, 5).map(({ index }) => index + 1);
    throw new HostFailure(
      `${key} is set ${settings.length} times ${where}, on lines ${numbers.join(', ')}; remove all but one, or declare the lines with line-unix`,
    );
  }
  if (settings[0]?.continues === true)
    throw new HostFailure(`the value of ${key} ${where} has several lines; declare them with line-unix or block-unix`);
  return settings[0] ?? null;
}

export function look(resource: IniUnix, machine: Pick<Machine, 'walk'>): SeenSetting {
  const seen = lookAtText(resource, machine);
  const lines = linesOf(seen);
  const place = placeOf(resource);
  const found = settingIn(resource, lines);
  const { validate } = resource.body;
  const missing = validate == null || isAbsent(resource) ? null : missingProgram(validate);
  return {
    ...seen,
    found,
    position: found === null ? positionOf(lines, insertionIndex(lines, place), 0) : positionOf(lines, found.index, 1),
    hasSection: hasSection(lines, place),
    needsBlankLine: needsBlankLine(lines),
    ...(missing === null ? {} : { missingProgram: missing }),
    restored: null,
  };
}
