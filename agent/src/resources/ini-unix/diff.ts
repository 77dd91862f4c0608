import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import { readable } from '../text-edit/lines.ts';
import {
  awaiting,
  bitsLost,
  changedLines,
  isAbsent,
  linesOf,
  nothingLeft,
  otherObject,
  shown,
} from '../text-edit/text-file.ts';
import type { SettingBefore } from './before.ts';
import { withoutSetting, withSetting } from './ini.ts';
import { declaredValue, type IniUnix, placeOf, type SeenSetting } from './seen.ts';

export function diffSetting(
  resource: IniUnix,
  seen: SeenSetting,
  circumstances: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const other = otherObject(resource, seen, circumstances);
  if (other !== null) return other;
  const { found } = seen;
  const from = found === null ? null : shown(readable(found.value ?? ''));
  const place = placeOf(resource);
  if (isAbsent(resource)) {
    if (found === null) return nothing();
    const diff = changedLines(resource, seen, withoutSetting(linesOf(seen), place));
    return { action: 'remove', changes: [{ field: 'value', from, to: null }, ...bitsLost(seen)], diff };
  }
  const value = declaredValue(resource);
  if (found !== null && found.value === value) return nothing();
  return {
    action: found === null ? 'create' : 'update',
    changes: [{ field: 'value', from, to: shown(resource.body.value ?? '') }, ...bitsLost(seen)],
    diff: changedLines(resource, seen, withSetting(linesOf(seen), place, value)),
    ...awaiting(resource, seen, circumstances),
  };
}

export function diffSettingRemoval(resource: IniUnix, before: SettingBefore, seen: SeenSetting): Difference {
  const gone = nothingLeft(resource, seen, before.was === 'present');
  if (gone !== null) return gone;
  const { restored } = seen;
  if (restored === null) return nothing(before.was === 'absent' ? 'already removed' : 'already in its original state');
  const text = (line: string | null): string | null => (line === null ? null : shown(readable(line)));
  return {
    action: 'remove',
    changes: [{ field: 'value', from: text(restored.from), to: text(restored.to) }, ...bitsLost(seen)],
    diff: restored.diff,
    ...(restored.to === null ? {} : { message: 'restores the original state' }),
  };
}
