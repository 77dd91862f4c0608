import { composeSubjects } from './hosts/subjects/containers/compose.ts';
import { containersRoot } from './hosts/subjects/containers/root.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

describeSubjects('projects of the first Compose with Podman on a test host', composeSubjects, async () =>
  TestHosts.open({ base: await containersRoot() }),
);
