import { shareOf, subjects } from './hosts/subjects/index.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

// Split into three files that run in parallel, because these tests take longer than any other file.
describeSubjects('providers on a test host', shareOf(subjects, 0, 3), () => TestHosts.open());
