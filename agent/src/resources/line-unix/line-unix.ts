import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { inBytes, positionOf } from '../text-edit/lines.ts';
import { changedLines, isAbsent, linesOf, lookAtText, pathOf, rewrite } from '../text-edit/text-file.ts';
import { type LineBefore, rememberLine, restored } from './before.ts';
import { bodyOf, linesToChange } from './declared.ts';
import { diffLine, diffLineRemoval, edited, isDone } from './diff.ts';
import { look, type SeenLine } from './seen.ts';

/** A line in a file that the agent does not own. */
export const lineUnix = defineProvider<'line-unix', SeenLine, LineBefore>({
  type: 'line-unix',
  fields: {
    path: 'text',
    line: 'text',
    match: 'text?',
    backrefs: 'boolean?',
    replaces: 'text?',
    before: 'text?',
    after: 'text?',
    validate: 'text?',
    ensure: 'text?',
  },
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,

  check(resource) {
    checkPath(pathOf(resource));
    const { line, match, backrefs, replaces, before, after } = bodyOf(resource);
    if (/[\n\r\0]/.test(line)) throw new HostFailure('`line` must be one line, without line breaks');
    if (backrefs === true && match == null)
      throw new HostFailure('`backrefs` requires `match`, whose groups it inserts');
    if (replaces != null && match == null)
      throw new HostFailure('`replaces` requires `match`, the expression of the lines to replace');
    if (before != null && after != null)
      throw new HostFailure('`before` and `after` cannot be combined; declare only one');
  },

  observe(resource, { succeeded }, machine) {
    const declared = succeeded?.type === 'line-unix' && !isAbsent(succeeded) ? inBytes(bodyOf(succeeded).line) : null;
    return look(resource, declared, machine);
  },

  diff: diffLine,
  inBrief: ({ content: _content, restored: back, ...seen }) =>
    JSON.parse(JSON.stringify({ ...seen, content: null, restored: back === null ? null : { ...back, diff: null } })),
  weight: ({ content, hits }) => (content?.length ?? 0) + hits.length * 64,
  remember: async (resource, seen, _difference, before) => rememberLine(resource, seen, before),

  async apply(resource, { previous }, _difference, machine) {
    await rewrite(
      resource,
      machine,
      (seen) => {
        const lines = linesOf(seen);
        const hits = linesToChange(resource, previous, lines);
        return isDone(resource, lines, hits) ? null : edited(resource, lines, hits);
      },
      bodyOf(resource).validate ?? null,
    );
    return {};
  },

  observeForRemoval(resource, before, machine) {
    const text = lookAtText(resource, machine);
    const lines = linesOf(text);
    const seen = { ...text, hits: [], end: positionOf(lines, lines.length, 0), previous: null, restored: null };
    const back = seen.type === 'file' ? restored(resource, before, lines) : null;
    if (back === null) return seen;
    return { ...seen, restored: { from: back.from, to: back.to, diff: changedLines(resource, seen, back.lines) } };
  },

  diffRemoval: diffLineRemoval,

  async remove(resource, before, _seen, _difference, machine) {
    await rewrite(resource, machine, (seen) => restored(resource, before, linesOf(seen))?.lines ?? null);
    return {};
  },
});
