import { rememberFile } from '../file-unix/apply.ts';
import { diffFile } from '../file-unix/diff.ts';
import { fileInBrief, fileWeight } from '../file-unix/seen.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Machine } from '../provider/provider.ts';
import type { ComposeBefore } from './before.ts';
import { applyProject, removeProject } from './change.ts';
import { checkDeclared, type Declared, fileOf, isAbsent } from './declared.ts';
import { diffProject, diffProjectRemoval, missingImages, movedFile } from './diff.ts';
import { isOwnProject } from './mark.ts';
import { lookAtProject, lookForRemoval, type SeenProject } from './seen.ts';

/**
 * A Compose project of Docker or Podman. The agent writes the Compose file, and Compose compares and creates the
 * containers. Values of variables are passed in the environment of Compose. The engine may show them in arguments, such
 * as a `command`, but the agent does not.
 */
export const compose = defineProvider<'compose', SeenProject, ComposeBefore>({
  type: 'compose',
  fields: {
    name: 'text',
    path: 'text',
    content: 'text?',
    source: 'text?',
    environment: 'map?',
    profiles: 'list?',
    jobs: 'list?',
    pull: 'text?',
    wait: 'integer?',
    engine: 'text?',
    registry: 'text?',
    registry_user: 'text?',
    registry_password: 'text?',
    remove_images: 'boolean?',
    remove_volumes: 'boolean?',
    force: 'boolean?',
    ensure: 'text?',
  },
  path: ({ body }) => body.path,
  // Files that the Compose file names, images, and the engine.
  reads: () => ['/'],
  // A container may need a network of the project.
  brings: () => ['programs'],
  check: checkDeclared,

  observe: (resource, { purpose }, machine) => lookAtProject(resource, purpose, machine),
  diff: diffProject,
  inBrief: (seen) => JSON.parse(JSON.stringify({ ...seen, file: fileInBrief(seen.file) })),
  weight: ({ file }) => fileWeight(file),

  remember: async (resource, seen, _difference, before, machine) => ({
    file: await rememberedFile(resource, seen, before, machine),
    was: before?.was ?? formerOf(resource, seen),
    images: [
      ...new Set([...(before?.images ?? []), ...(isAbsent(resource) ? [] : missingImages(seen.wanted ?? [], seen))]),
    ],
  }),
  rememberForTrial: () => ({ file: null, was: 'ours', images: [] }),

  apply: applyProject,

  observeForRemoval: lookForRemoval,
  diffRemoval: (resource, before, seen, _circumstances, copies) => diffProjectRemoval(resource, before, seen, copies),
  remove: (resource, before, seen, _difference, machine) => removeProject(resource, before, seen, machine),

  wasApplied(resource, brief, seenNow, { action }) {
    if (diffProject(resource, seenNow, { purpose: 'apply', restartBy: [] }).action !== 'none') return false;
    if (action !== 'restart') return true;
    const then = (brief as unknown as SeenProject).containers;
    return seenNow.containers.every(({ id, startedAt }) =>
      then.every((one) => one.id !== id || one.startedAt !== startedAt),
    );
  },
});

async function rememberedFile(
  resource: Declared,
  seen: SeenProject,
  before: ComposeBefore | null,
  machine: Machine,
): Promise<ComposeBefore['file']> {
  const earlier = before?.file ?? null;
  const file = fileOf(resource);
  const difference = diffFile(file, seen.file, { purpose: 'apply' });
  if (difference.action === 'none') return earlier;
  const { path } = resource.body;
  if (earlier !== null && earlier.path !== path) throw movedFile(resource, earlier.path);
  return { path, before: await rememberFile(file, seen.file, difference, earlier?.before ?? null, machine) };
}

const formerOf = ({ body: { path } }: Declared, { containers, mark, former }: SeenProject): ComposeBefore['was'] =>
  containers.length === 0 || isOwnProject(mark, path, containers) ? 'absent' : (former ?? 'kept');
