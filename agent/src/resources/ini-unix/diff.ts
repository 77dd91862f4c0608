import { type Circumstances, type Difference, nothing, presenceDrift, typeDrift } from '../provider/provider.ts';
import { readable } from '../text-edit/lines.ts';
import {
  awaitsFile,
  awaitsProgram,
  bitsLost,
  changedLines,
  isAbsent,
  linesOf,
  notAFile,
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
  const isDrift = circumstances.purpose === 'drift';
  const absent = isAbsent(resource);
  if (seen.type !== 'file' && seen.type !== 'absent') {
    if (!isDrift) throw notAFile(resource, seen);
    return absent ? presenceDrift() : typeDrift({ type: seen.type }, 'file');
  }
  const { found } = seen;
  const from = found === null ? null : shown(readable(found.value ?? ''));
  const place = placeOf(resource);
  if (absent) {
    if (found === null) return nothing();
    const diff = changedLines(resource, seen, withoutSetting(linesOf(seen), place));
    return { action: 'remove', changes: [{ field: 'value', from, to: null }, ...bitsLost(seen)], diff };
  }
  const value = declaredValue(resource);
  if (found !== null && found.value === value) return nothing();
  const { awaits = [] } = awaitsFile(resource, seen, circumstances);
  awaits.push(...awaitsProgram(resource, seen, circumstances));
  return {
    action: found === null ? 'create' : 'update',
    changes: [{ field: 'value', from, to: shown(resource.body.value ?? '') }, ...bitsLost(seen)],
    diff: changedLines(resource, seen, withSetting(linesOf(seen), place, value)),
    ...(awaits.length === 0 ? {} : { awaits }),
  };
}

export function diffSettingRemoval(resource: IniUnix, before: SettingBefore, seen: SeenSetting): Difference {
  if (seen.type === 'absent') return nothing('already removed, with its file');
  if (seen.type !== 'file') {
    if (before.was === 'present') throw notAFile(resource, seen);
    return nothing('already removed; the path is no longer a file');
  }
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
