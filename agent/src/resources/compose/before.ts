import type { FileBefore } from '../file-unix/seen.ts';
import type { Declared } from './declared.ts';
import type { Mark } from './mark.ts';

/** A service of a project that the agent did not start. */
export type Former = { service: string; image: string; hash: string; count: number; running: boolean };

/** The state before the agent's first change. */
export type ComposeBefore = {
  /** The Compose file; null if the agent has not changed it. */
  file: { path: string; before: FileBefore } | null;
  /**
   * The project: absent, started by the agent, or started by others. Removal starts the services of others again if
   * the file described them; otherwise, it keeps the containers.
   */
  was: 'absent' | 'ours' | 'kept' | Former[];
  /** Images that did not exist before the agent needed them. */
  images: string[];
};

/** Returns the resource with the path of the project. A refused apply may have declared another one. */
export function withFormerPath(
  resource: Declared,
  { file }: Pick<ComposeBefore, 'file'>,
  mark: Pick<Mark, 'path'> | null,
): Declared {
  const path = mark?.path ?? file?.path;
  return path === undefined ? resource : { ...resource, body: { ...resource.body, path } };
}
