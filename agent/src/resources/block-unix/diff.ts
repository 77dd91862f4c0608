import type { ResolvedResource } from '@muster/protocol/module';
import { contentOf } from '../../host/files/inspect.ts';
import { contentText } from '../file-unix/seen.ts';
import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import {
  awaiting,
  bitsLost,
  changedLines,
  isAbsent,
  linesOf,
  nothingLeft,
  otherObject,
} from '../text-edit/text-file.ts';
import { type BlockBefore, edited, sameLines } from './edit.ts';
import { brokenBlock, declaredLines, type SeenBlock } from './seen.ts';

/** Formats a block's lines for a field change. */
const textOf = (lines: readonly string[]): string =>
  contentText(contentOf(Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1')));

export function diffBlock(
  resource: ResolvedResource,
  seen: SeenBlock,
  circumstances: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const { purpose } = circumstances;
  const absent = isAbsent(resource);
  const { found } = seen;
  const other = otherObject(resource, seen, circumstances);
  if (other !== null) return other;
  if (found.is === 'broken') {
    if (purpose !== 'drift') throw brokenBlock(resource, found.how);
    return {
      action: 'update',
      changes: [{ field: 'marker', from: 'broken', to: absent ? null : 'whole' }],
      diff: null,
    };
  }
  const block = found.is === 'whole' ? found.block : null;
  const change = (from: readonly string[] | null, to: readonly string[] | null): Difference['changes'] => [
    { field: 'content', from: from === null ? null : textOf(from), to: to === null ? null : textOf(to) },
    ...bitsLost(seen),
  ];
  const diff = (): string | null => changedLines(resource, seen, edited(resource, linesOf(seen), block));
  if (absent) {
    if (block === null) return nothing();
    const changes = change(block.lines, null);
    return { action: 'remove', changes, diff: diff(), ...awaiting(resource, seen, circumstances) };
  }
  const declared = declaredLines(resource);
  if (block !== null && (declared === null || sameLines(block.lines, declared))) return nothing();
  return {
    action: block === null ? 'create' : 'update',
    changes: change(block?.lines ?? null, declared ?? []),
    diff: diff(),
    ...awaiting(resource, seen, circumstances),
  };
}

export function diffBlockRemoval(resource: ResolvedResource, before: BlockBefore, seen: SeenBlock): Difference {
  const gone = nothingLeft(resource, seen, before.was === 'present');
  if (gone !== null) return gone;
  if (seen.found.is === 'broken') throw brokenBlock(resource, seen.found.how);
  const { restored } = seen;
  if (restored === null) return nothing(before.was === 'absent' ? 'already removed' : 'already in its original state');
  const { from, to, diff } = restored;
  return {
    action: 'remove',
    changes: [
      { field: 'content', from: from === null ? null : textOf(from), to: to === null ? null : textOf(to) },
      ...bitsLost(seen),
    ],
    diff,
    ...(to === null ? {} : { message: 'restores the original state' }),
  };
}
