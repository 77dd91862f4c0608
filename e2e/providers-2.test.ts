import { shareOf, subjects } from './hosts/subjects/index.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

// Split into four files, because these tests take longer than any other file. `npm test` runs two of them.
describeSubjects('providers on a test host', shareOf(subjects, 1, 4), () => TestHosts.open());
