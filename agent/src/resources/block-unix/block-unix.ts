import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { changedLines, isAbsent, linesOf, pathOf, rewrite } from '../text-edit/text-file.ts';
import { diffBlock, diffBlockRemoval } from './diff.ts';
import { type BlockBefore, edited, restored, sameLines } from './edit.ts';
import { beginOf, bodyOf, brokenBlock, declaredLines, endOf, findBlock, look, type SeenBlock } from './seen.ts';

/** Maximum length of a previous block that is kept so that it can be restored, in characters. */
const maxSaved = 128 * 1024;

/**
 * Returns the form for the journal: a placeholder that equals no declared block replaces any block of more than 16 KiB.
 */
const inBrief = <T extends string[] | null>(lines: T): T | string[] =>
  lines !== null && lines.reduce((sum, line) => sum + line.length, 0) > 16 * 1024 ? ['(large)'] : lines;

/** A block between two marker lines, in a file that the agent does not own. */
export const blockUnix = defineProvider<'block-unix', SeenBlock, BlockBefore>({
  type: 'block-unix',
  fields: {
    path: 'text',
    marker: 'text',
    content: 'text?',
    before: 'text?',
    after: 'text?',
    validate: 'text?',
    ensure: 'text?',
  },
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,

  check(resource) {
    checkPath(pathOf(resource));
    const { marker, before, after } = bodyOf(resource);
    if (!/^[^\s\x00-\x1f]+$/.test(marker)) throw new HostFailure('`marker` must be one word');
    if (before != null && after != null)
      throw new HostFailure('`before` and `after` cannot be combined; declare only one');
    const markers = [beginOf(resource), endOf(resource)];
    if (declaredLines(resource)?.some((line) => markers.includes(line.trimEnd())) === true)
      throw new HostFailure('its `content` contains a marker line of the block');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),

  diff: diffBlock,
  inBrief: ({ content: _content, restored: back, found, ...seen }) =>
    JSON.parse(
      JSON.stringify({
        ...seen,
        content: null,
        found:
          found.is === 'whole' ? { is: 'whole', block: { ...found.block, lines: inBrief(found.block.lines) } } : found,
        restored: back === null ? null : { from: inBrief(back.from), to: inBrief(back.to), diff: null },
      }),
    ),
  weight: ({ content }) => content?.length ?? 0,

  async remember(resource, { found }, _difference, before) {
    if (before !== null) return before;
    if (found.is !== 'whole') return { was: 'absent' };
    const { lines, index, above, below, ending } = found.block;
    if (lines.reduce((sum, line) => sum + line.length, 0) > maxSaved)
      throw new HostFailure(
        `the existing block in ${pathOf(resource)} is larger than ${maxSaved / 1024} KiB, so it could not be restored later; nothing is changed. Remove the block by hand.`,
      );
    return { was: 'present', lines, index, above, below, ending };
  },

  async apply(resource, _seen, _difference, machine) {
    await rewrite(
      resource,
      machine,
      (seen) => {
        const lines = linesOf(seen);
        const found = findBlock(resource, lines);
        if (found.is === 'broken') throw brokenBlock(resource, found.how);
        const block = found.is === 'whole' ? found.block : null;
        const declared = isAbsent(resource) ? null : declaredLines(resource);
        if (block !== null && declared !== null && sameLines(block.lines, declared)) return null;
        return edited(resource, lines, block);
      },
      bodyOf(resource).validate ?? null,
    );
    return {};
  },

  observeForRemoval(resource, before, machine) {
    const seen = look(resource, machine);
    const back = seen.type === 'file' && seen.found.is !== 'broken' ? restored(resource, before, linesOf(seen)) : null;
    if (back === null) return seen;
    return { ...seen, restored: { from: back.from, to: back.to, diff: changedLines(resource, seen, back.lines) } };
  },

  diffRemoval: diffBlockRemoval,

  async remove(resource, before, _seen, _difference, machine) {
    await rewrite(resource, machine, (seen) => {
      const lines = linesOf(seen);
      const found = findBlock(resource, lines);
      if (found.is === 'broken') throw brokenBlock(resource, found.how);
      return restored(resource, before, lines)?.lines ?? null;
    });
    return {};
  },
});
