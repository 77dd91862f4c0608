import { dockerComposeSubjects } from './hosts/subjects/containers/compose.ts';
import { containersRoot } from './hosts/subjects/containers/root.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

describeSubjects('projects of the second Compose with Docker on a test host', dockerComposeSubjects, async () =>
  TestHosts.open({ base: await containersRoot() }),
);
