import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { splitLines } from '../text-edit/lines.ts';
import { pathOf, rewrite } from '../text-edit/text-file.ts';
import { restored, type ValueBefore } from './before.ts';
import { diffValue, diffValueRemoval } from './diff.ts';
import { decode } from './edit.ts';
import {
  edited,
  fileOf,
  look,
  lookForRemoval,
  placeOf,
  type SeenValue,
  type Structured,
  type StructuredType,
} from './seen.ts';
import type { Syntax } from './syntax.ts';

const maxDepth = 64;

const depthOf = (value: unknown, depth = 0): number =>
  typeof value !== 'object' || value === null || depth > maxDepth
    ? depth
    : Math.max(depth, ...Object.values(value).map((item) => depthOf(item, depth + 1)));

function check({ body: { path, pointer, value, ensure } }: Structured): void {
  checkPath(path);
  if (!/^(\/[^\n\r\0]*)+$/.test(pointer)) throw new HostFailure('`pointer` must begin with "/", and be one line');
  if (pointer.split('/').length > maxDepth || depthOf(value) > maxDepth)
    throw new HostFailure(`\`pointer\` and \`value\` must not be nested more than ${maxDepth} deep`);
  if ((value === undefined || value === null) && ensure !== 'absent')
    throw new HostFailure('`value` is missing; without it, the value can only be declared absent');
}

/**
 * Returns the provider that manages a single value in a file of this syntax. The agent does not own the rest of the
 * file.
 */
export const structuredProvider = (type: StructuredType, syntax: Syntax) =>
  defineProvider<StructuredType, SeenValue, ValueBefore>({
    type,
    fields: { path: 'text', pointer: 'text', value: 'any?', validate: 'text?', ensure: 'text?' },
    brings: (resource) => broughtBy(pathOf(resource)),
    path: pathOf,
    check,
    observe: (resource, _circumstances, machine) => look(resource, syntax, machine),
    diff: diffValue,
    inBrief: (seen) => JSON.parse(JSON.stringify({ ...seen, content: null, after: null })),
    weight: ({ content, after }) => (content?.length ?? 0) + (after?.length ?? 0),
    // The file may have been missing when it was observed, and created empty since then.
    remember: async (_resource, seen, _difference, before) =>
      before ?? seen.before ?? { was: 'absent', depth: 0, addedBlank: false, old: [] },

    async apply(resource, _seen, _difference, machine) {
      await rewrite(
        resource,
        machine,
        ({ content }) => {
          const { after } = edited(resource, syntax, content ?? Buffer.alloc(0));
          return after === null ? null : splitLines(Buffer.from(after));
        },
        resource.body.validate ?? null,
      );
      return {};
    },

    observeForRemoval: (resource, before, machine) => lookForRemoval(resource, syntax, before, machine),
    diffRemoval: diffValueRemoval,

    async remove(resource, before, _seen, _difference, machine) {
      await rewrite(resource, machine, ({ content }) => {
        const file = fileOf(resource, syntax);
        const text = decode(content ?? Buffer.alloc(0), file.path);
        const back = restored(file, text, placeOf(resource), before);
        return back === null ? null : splitLines(Buffer.from(back.text));
      });
      return {};
    },
  });
