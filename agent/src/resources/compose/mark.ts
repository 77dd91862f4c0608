import { z } from 'zod';
import type { WantedService } from '../../host/containers/compose-program.ts';
import type { Inspected } from '../../host/files/inspect.ts';
import type { Machine } from '../provider/provider.ts';
import { type Declared, engineOf } from './declared.ts';

/** The private file that says what of a project the agent made. A label would change the hashes of the services. */

const names = z.array(z.string());
const objects = z.object({ networks: names, volumes: names });
const shape = z.object({
  path: z.string(),
  sha256: z.string().nullable(),
  started: z.boolean(),
  foreign: objects.nullable(),
  own: objects.nullable(),
  services: z.record(z.string(), z.object({ digest: z.string(), hashes: names })),
});

/** The parts of a project that the agent made. */
export interface Mark {
  /** Path of the Compose file. */
  path: string;
  /**
   * SHA-256 of the content with which the file at `path` is the agent's. The agent may have been killed before it wrote
   * or after it removed the file, so that the file with other content is not its own. Null if any content is, because
   * the agent wrote the file.
   */
  sha256: string | null;
  /** Whether the agent ran `up`. */
  started: boolean;
  /** Objects with the label of the project that others had created when the agent last ran `up`; null if it did not. */
  foreign: Objects | null;
  /** The objects that the agent's runs of `up` created; null until the last one ended. */
  own: Objects | null;
  services: Known;
}

type Objects = z.infer<typeof objects>;

/**
 * For each service, the digest of the definition that was applied, and the hashes in the labels of its containers. These
 * hashes can differ from those that Compose prints.
 */
export type Known = Readonly<Record<string, { digest: string; hashes: string[] }>>;

const nameOf = (resource: Declared): string => `compose-${engineOf(resource)}-${resource.body.name}`;

/** Returns the mark; null if the agent made nothing of the project. */
export function readMark(resource: Declared, { privateFiles }: Pick<Machine, 'privateFiles'>): Mark | null {
  const text = privateFiles.read(nameOf(resource));
  if (text === null) return null;
  try {
    return shape.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

export const writeMark = (resource: Declared, mark: Mark, { privateFiles }: Pick<Machine, 'privateFiles'>): void =>
  privateFiles.write(nameOf(resource), JSON.stringify(mark));

export const removeMark = (resource: Declared, { privateFiles }: Pick<Machine, 'privateFiles'>): void =>
  privateFiles.remove(nameOf(resource));

/** Reports whether the agent wrote the file. */
export const isOwnFile = (mark: Mark | null, path: string, found: Inspected): boolean =>
  mark?.path === path &&
  (mark.sha256 === null || (found.type === 'file' && found.content !== null && found.content.sha256 === mark.sha256));

/** Reports whether the agent started all of these containers. */
export const isOwnProject = (mark: Mark | null, path: string, containers: readonly { file: string }[]): boolean =>
  mark?.started === true && mark.path === path && containers.every(({ file }) => file === path);

/** Returns the networks or volumes that the agent created. */
export const ownObjects = (
  mark: Pick<Mark, 'foreign' | 'own'> | null,
  type: 'networks' | 'volumes',
  found: readonly string[],
): string[] => {
  const foreign = mark?.foreign?.[type];
  if (foreign === undefined) return [];
  const own = mark?.own?.[type];
  // The agent was killed during `up`, and others create nothing at that time.
  return found.filter((name) => (own === undefined ? !foreign.includes(name) : own.includes(name)));
};

/** Returns the mark before a run of `up`, after which every other object is the agent's. */
export const beforeUp = (mark: Mark, found: Objects): Mark => ({
  ...mark,
  started: true,
  foreign: eachType((type) => {
    const own = ownObjects(mark, type, found[type]);
    return found[type].filter((name) => !own.includes(name));
  }),
  own: null,
});

/** Returns the mark with what exists of the agent's objects after a run of `up`, or after a removal. */
export const withOwn = (mark: Mark, found: Objects): Mark => ({
  ...mark,
  own: eachType((type) => ownObjects(mark, type, found[type])),
});

const eachType = (names: (type: 'networks' | 'volumes') => string[]): Objects => ({
  networks: names('networks'),
  volumes: names('volumes'),
});

/** Returns the record of services that Compose has just started. */
export const knownOf = (
  wanted: readonly WantedService[],
  containers: readonly { service: string; hash: string }[],
): Known =>
  Object.fromEntries(
    wanted.map(({ name, digest }) => {
      const hashes = containers.flatMap(({ service, hash }) => (service === name ? [hash] : []));
      return [name, { digest, hashes: [...new Set(hashes)].sort() }];
    }),
  );

/** Reports whether a container was created from the declared definition. */
export function hasDefinition(
  { name, hash, digest }: Pick<WantedService, 'name' | 'hash' | 'digest'>,
  container: { hash: string },
  known: Known,
): boolean {
  const applied = Object.hasOwn(known, name) ? known[name] : undefined;
  if (applied === undefined) return container.hash === hash;
  return applied.digest === digest && applied.hashes.includes(container.hash);
}
