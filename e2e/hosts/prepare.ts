// Builds the roots of the test hosts, and packages that some tests install, while other tests run: `npm test` starts
// this first. A test that needs one of them earlier waits for its lock. If this build failed, the test builds it itself
// and reports the reason.
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
