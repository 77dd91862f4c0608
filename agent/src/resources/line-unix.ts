import { HostFailure } from '../host/failure.ts';
import { checkPath } from '../host/path-walk.ts';
import { broughtBy } from './file-unix/brought.ts';
import { type LineBefore, rememberLine, restored } from './line-unix/before.ts';
import { diffLine, diffLineRemoval, edited } from './line-unix/diff.ts';
import { bodyOf, lineOf, look, meant, type SeenLine } from './line-unix/seen.ts';
import type { Provider } from './provider.ts';
import { inBytes, placeOf } from './text-edit/lines.ts';
import { changedLines, isAbsent, linesOf, lookAtText, pathOf, rewrite } from './text-edit/text-file.ts';

/** One line of a file that others own. */
export const lineUnix: Provider<SeenLine, LineBefore> = {
  type: 'line-unix',
  recheckable: true,
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,

  check(resource) {
    checkPath(pathOf(resource));
    if (/[\n\r\0]/.test(bodyOf(resource).line)) throw new HostFailure('`line` must be one line, without line breaks');
  },

  observe(resource, { succeeded }, machine) {
    const declared = succeeded?.type === 'line-unix' && !isAbsent(succeeded) ? inBytes(bodyOf(succeeded).line) : null;
    return look(resource, declared, machine);
  },

  diff: diffLine,
  canTell: () => true,
  inBrief: ({ content: _content, restored: back, ...seen }) =>
    JSON.parse(JSON.stringify({ ...seen, content: null, restored: back === null ? null : { ...back, diff: null } })),
  weight: ({ content, hits }) => (content?.length ?? 0) + hits.length * 64,
  remember: async (resource, seen, _difference, before) => rememberLine(resource, seen, before),
  claim: () => null,

  async apply(resource, { previous }, _difference, machine) {
    await rewrite(resource, machine, (seen) => {
      const lines = linesOf(seen);
      const hits = meant(resource, previous, lines);
      const done = isAbsent(resource) ? hits.length === 0 : lines[hits[0] ?? -1]?.text === lineOf(resource);
      return done ? null : edited(resource, lines, hits);
    });
    return {};
  },

  observeForRemoval(resource, before, machine) {
    const text = lookAtText(resource, machine);
    const lines = linesOf(text);
    const seen = { ...text, hits: [], end: placeOf(lines, lines.length, 0), previous: null, restored: null };
    const back = seen.type === 'file' ? restored(resource, before, lines) : null;
    if (back === null) return seen;
    return { ...seen, restored: { from: back.from, to: back.to, diff: changedLines(resource, seen, back.lines) } };
  },

  diffRemoval: diffLineRemoval,

  async remove(resource, before, _seen, _difference, machine) {
    await rewrite(resource, machine, (seen) => restored(resource, before, linesOf(seen))?.lines ?? null);
    return {};
  },
};
