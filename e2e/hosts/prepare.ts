// `npm test` starts this program first, to build the roots of the test hosts and Muster's packages while other tests
// run. A test that needs one of them earlier waits for the build lock. If a build fails here, the test repeats it and
// reports the reason.
import { built } from '../../packaging/built.ts';
import { missing } from '../requirements.ts';
import { packagePool } from './apt/pool.ts';
import { baseRoot } from './base-root.ts';
import { firewallsRoot } from './firewalls/firewalls-root.ts';
import { curlRoot, replicasRoot } from './installed.ts';
import { rpmRoot } from './packages/dnf-root.ts';
import { pacmanRoot } from './packages/pacman-root.ts';
import { zypperRoot } from './packages/zypper-root.ts';
import { recipesRoot } from './recipes-root.ts';
import { selinuxRoot } from './selinux/selinux-root.ts';
import { containersRoot } from './subjects/containers/root.ts';
import { databasesRoot } from './subjects/databases.ts';

if (missing('linux', 'root', 'namespaces', 'hosts') === null) {
  const base = await baseRoot();
  await Promise.all([
    packagePool(base),
    rpmRoot(),
    zypperRoot(),
    pacmanRoot(),
    curlRoot(),
    containersRoot(),
    databasesRoot(),
    replicasRoot(),
    selinuxRoot(),
    firewallsRoot(),
    recipesRoot().then((root) => packagePool(root, 'recipes')),
  ]);
  await built();
}
