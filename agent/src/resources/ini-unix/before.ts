import { findPosition, insertLines, type Position, type TextLine } from '../text-edit/lines.ts';
import { settingsIn, withoutEmptySection, withoutSetting } from './ini.ts';
import { type IniUnix, placeOf, type SeenSetting } from './seen.ts';

/** The setting before the agent first changed it. */
export type SettingBefore =
  | { was: 'absent'; hadSection: boolean; addedBlank: boolean }
  | {
      was: 'present';
      text: string;
      index: number;
      above: string | null;
      below: string | null;
      ending: Position['ending'];
    };

export const settingBefore = ({ found, position, hasSection, needsBlankLine }: SeenSetting): SettingBefore =>
  found === null
    ? { was: 'absent', hadSection: hasSection, addedBlank: !hasSection && needsBlankLine }
    : { was: 'present', text: found.text, ...position };

/**
 * Returns the file with the setting as it was before the agent's first change.
 * @returns null if it is in that state
 */
export function restored(
  resource: IniUnix,
  before: SettingBefore,
  lines: readonly TextLine[],
): { lines: TextLine[]; from: string | null; to: string | null } | null {
  const place = placeOf(resource);
  const found = settingsIn(lines, place).at(-1);
  const from = found?.text ?? null;
  if (before.was === 'absent') {
    if (found === undefined) return null;
    const without = withoutSetting(lines, place);
    return {
      lines: before.hadSection ? without : withoutEmptySection(without, place, before.addedBlank),
      from,
      to: null,
    };
  }
  const { text } = before;
  if (found?.text === text) return null;
  if (found !== undefined)
    return { lines: lines.map((line, index) => (index === found.index ? { ...line, text } : line)), from, to: text };
  const index = findPosition(lines, before) ?? Math.min(before.index, lines.length);
  return { lines: insertLines(lines, index, [text], before), from, to: text };
}
