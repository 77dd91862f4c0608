import { shareOf, subjects } from './hosts/subjects/index.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

// Tests a share of the providers, like providers-1.test.ts.
describeSubjects('providers on a test host', shareOf(subjects, 2, 3), () => TestHosts.open());
