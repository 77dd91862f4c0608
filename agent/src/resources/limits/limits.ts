import type { ResolvedResource } from '@muster/protocol/module';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
import { textOf, writtenPart } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Circumstances, type Difference, nothing, presenceDrift, restoring } from '../provider/provider.ts';

export interface SeenLimit {
  /** The agent's file. */
  file: SeenFile;
  /** The value in the agent's file; null if that file does not set this limit. */
  value: string | null;
}

export type LimitBefore = { file: FileBefore };

type Declared = ResolvedResource<'limits'>;

/** Returns the start of the line up to the value, in the format of limits.conf(5). */
const beginning = ({ body }: Declared): string =>
  `${body.domain} ${body.limit_type === 'both' ? '-' : body.limit_type} ${body.item} `;

function pathOf({ body: { domain, limit_type, item } }: Declared): string {
  const name = [domain.replaceAll('*', '%2A'), limit_type, item].join('-');
  return `/etc/security/limits.d/90-muster-${name}.conf`;
}

function fileOf(resource: Declared) {
  const { value, ensure } = resource.body;
  const text = `# Written by Muster, which reverts changes.\n${beginning(resource)}${value}\n`;
  return writtenPart(resource, { path: pathOf(resource), text: ensure === 'absent' ? null : text, mode: '0644' });
}

/** A pam_limits limit, in its own file. It applies to sessions that begin later. */
export const limits = defineProvider<'limits', SeenLimit, LimitBefore>({
  type: 'limits',
  fields: { domain: 'text', limit_type: 'text', item: 'text', value: 'text', ensure: 'text?' },
  path: pathOf,
  observe: (resource, _circumstances, machine) => seenIn(resource, fileOf(resource).look(machine)),
  diff: diffLimit,
  inBrief: (seen) => JSON.parse(JSON.stringify({ ...seen, file: fileInBrief(seen.file) })),
  weight: ({ file }) => fileWeight(file),

  async remember(resource, { file }, _difference, before, machine) {
    return { file: await fileOf(resource).record(file, before?.file ?? null, machine) };
  },

  async apply(resource, { file }, _difference, machine) {
    await fileOf(resource).write(file, machine);
    return {};
  },

  async observeForRemoval(resource, { file }, machine) {
    return seenIn(resource, await fileOf(resource).lookForRemoval(file, machine));
  },

  diffRemoval(resource, { file }, seen, _circumstances, copies) {
    if (fileOf(resource).diffRemoval(file, seen.file, copies).action === 'none') return restoring([]);
    return restoring([{ field: 'value', from: seen.value, to: null }]);
  },

  async remove(resource, { file }, seen, _difference, machine) {
    await fileOf(resource).restore(file, seen.file, machine);
    return {};
  },
});

function seenIn(resource: Declared, file: SeenFile): SeenLimit {
  const line = textOf(file)
    ?.split('\n')
    .find((each) => each.startsWith(beginning(resource)));
  return { file, value: line?.slice(beginning(resource).length) ?? null };
}

export function diffLimit(
  resource: Declared,
  { file, value }: SeenLimit,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference {
  const { action, changes } = fileOf(resource).diff(file, circumstances);
  if (action === 'none') return nothing();
  if (resource.body.ensure === 'absent') return presenceDrift();
  const wanted = resource.body.value;
  return { action, changes: value === wanted ? changes : [{ field: 'value', from: value, to: wanted }], diff: null };
}
