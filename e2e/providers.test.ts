import { subjects } from './hosts/subjects/index.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

describeSubjects('providers on a test host', subjects, () => TestHosts.open());
