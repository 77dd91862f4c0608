import { containerSubjects } from './hosts/subjects/containers/container.ts';
import { containersRoot } from './hosts/subjects/containers/root.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

describeSubjects('containers of Podman on a test host', containerSubjects, async () =>
  TestHosts.open({ base: await containersRoot() }),
);
