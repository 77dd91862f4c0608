import { shareOf, subjects } from './hosts/subjects/index.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

// Tests the providers that providers-1.test.ts does not test.
describeSubjects('providers on a test host', shareOf(subjects, 1, 2), () => TestHosts.open());
