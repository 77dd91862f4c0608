import { dirname } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { systemClock } from '../../../../lib/src/clock.ts';
import type { OpenDirectory, PathWalk } from '../../host/files/path-walk.ts';
import type { Machine } from '../../resources/provider/provider.ts';

/**
 * Returns a machine whose directories belong to root, for observations in a temporary directory.
 * @param shared directories in which other users can create names
 * @param others resources of the same operation
 */
export function machineWith({
  shared = [],
  others = [],
}: {
  shared?: readonly string[];
  others?: readonly ResolvedResource[];
} = {}): Machine {
  const open = (path: string): OpenDirectory => ({
    ...{ path, self: path, child: (name) => `${path}/${name}`, uid: 0, trusted: true },
    exclusive: !shared.includes(path),
  });
  const walk: Pick<PathWalk, 'open' | 'release' | 'within'> = {
    open,
    release: () => undefined,
    within: <T>(path: string, _missing: string, action: (parent: OpenDirectory, name: string) => T) =>
      action(open(dirname(path)), path.slice(path.lastIndexOf('/') + 1)),
  };
  return { walk, clock: systemClock, resourcesOf: () => others, isDesired: () => true } as unknown as Machine;
}
