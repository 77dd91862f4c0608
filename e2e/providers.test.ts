import { subjects } from './hosts/subjects/index.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** The provider contract for kinds that manage the machine itself, in test hosts with the real engine. */
describeSubjects('providers on a test host', subjects, () => TestHosts.open());
