import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import { splitLines } from '../text-edit/lines.ts';
import { awaiting, bitsLost, changedLines, isAbsent, nothingLeft, otherObject, shown } from '../text-edit/text-file.ts';
import type { ValueBefore } from './before.ts';
import type { SeenValue, Structured } from './seen.ts';
import { declaredValue, shownValue } from './value.ts';

/** Returns a value for display. Hides an object or a list if it may contain another resource's secret. */
const shownOrNull = (text: string | null, { hasSecret }: SeenValue): string | null => {
  if (text === null) return null;
  return hasSecret && /^[[{]/.test(text) ? '(sensitive)' : shown(text);
};

const diffOf = (resource: Structured, seen: SeenValue): string | null =>
  seen.after === null || seen.hasSecret ? null : changedLines(resource, seen, splitLines(Buffer.from(seen.after)));

export function diffValue(
  resource: Structured,
  seen: SeenValue,
  circumstances: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const other = otherObject(resource, seen, circumstances);
  if (other !== null) return other;
  if (seen.isAsDeclared) return nothing();
  const from = shownOrNull(seen.found, seen);
  const diff = diffOf(resource, seen);
  if (isAbsent(resource))
    return { action: 'remove', changes: [{ field: 'value', from, to: null }, ...bitsLost(seen)], diff };
  const to = shown(shownValue(declaredValue(resource.body.value)));
  return {
    action: seen.found === null ? 'create' : 'update',
    changes: [{ field: 'value', from, to }, ...bitsLost(seen)],
    diff,
    ...awaiting(resource, seen, circumstances),
  };
}

export function diffValueRemoval(resource: Structured, before: ValueBefore, seen: SeenValue): Difference {
  const gone = nothingLeft(resource, seen, before.was === 'present');
  if (gone !== null) return gone;
  const { restored } = seen;
  if (restored === null) return nothing(before.was === 'absent' ? 'already removed' : 'already in its original state');
  const change = { field: 'value', from: shownOrNull(restored.from, seen), to: shownOrNull(restored.to, seen) };
  return {
    action: 'remove',
    changes: [change, ...bitsLost(seen)],
    diff: diffOf(resource, seen),
    ...(before.was === 'absent' ? {} : { message: 'restores the original state' }),
  };
}
