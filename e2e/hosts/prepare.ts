// Builds what test hosts start from, and what some of them install, while other tests run: `npm test` starts this first. A test that needs one of them
// before it is there waits for its lock, and builds it itself, with the reason, when this could not.
import { built } from '../../packaging/built.ts';
import { missing } from '../requirements.ts';
import { packagePool } from './apt/pool.ts';
import { baseRoot } from './base-root.ts';
import { curlRoot } from './installed.ts';
import { recipesRoot } from './recipes-root.ts';
import { rpmRoot } from './rpm-root.ts';

if (missing('linux', 'root', 'namespaces', 'hosts') === null) {
  const base = await baseRoot();
  await Promise.all([
    packagePool(base),
    rpmRoot(),
    curlRoot(),
    recipesRoot().then((root) => packagePool(root, 'recipes')),
  ]);
  await built();
}
