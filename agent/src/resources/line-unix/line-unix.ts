import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { inBytes, positionOf, type TextLine } from '../text-edit/lines.ts';
import { changedLines, isAbsent, linesOf, lookAtText, pathOf, rewrite } from '../text-edit/text-file.ts';
import { type LineBefore, rememberLine, restored } from './before.ts';
import { bodyOf, linesToChange, replacesEvery } from './declared.ts';
import { diffLine, diffLineRemoval, edited, isDone } from './diff.ts';
import { look, type SeenLine } from './seen.ts';

/**
 * @throws HostFailure if another program changed the file, and the edit would now change a line that is not recorded
 */
function expectRecorded(
  resource: ResolvedResource,
  seen: SeenLine,
  lines: readonly TextLine[],
  hits: readonly number[],
  after: readonly TextLine[],
): void {
  const isEvery = replacesEvery(resource);
  if (!isEvery && !isAbsent(resource)) return;
  const recorded = seen.hits.map(({ text }) => text);
  const isRecorded = (text: string): boolean => {
    const at = recorded.indexOf(text);
    if (at !== -1) recorded.splice(at, 1);
    return at !== -1;
  };
  const changed = hits.filter((index) => !isEvery || after[index]?.text !== lines[index]?.text);
  const isAdded = isEvery && hits.length === 0;
  if ((isAdded && (seen.managed ?? 0) > 0) || !changed.every((index) => isRecorded((lines[index] as TextLine).text)))
    throw new HostFailure(`${pathOf(resource)} was changed during the apply; apply again`);
}

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
      throw new HostFailure('`backrefs` requires `match`, because it inserts the groups of `match`');
    if (replaces != null && match == null)
      throw new HostFailure('`replaces` requires `match`, which selects the lines to replace');
    if (replaces === 'every_part' && isAbsent(resource))
      throw new HostFailure(
        '`replaces: every_part` cannot be combined with `ensure: absent`, which removes whole lines',
      );
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

  async apply(resource, seen, _difference, machine) {
    await rewrite(
      resource,
      machine,
      (now) => {
        const lines = linesOf(now);
        const hits = linesToChange(resource, seen.previous, lines);
        if (isDone(resource, lines, hits)) return null;
        const after = edited(resource, lines, hits);
        expectRecorded(resource, seen, lines, hits, after);
        return after;
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
