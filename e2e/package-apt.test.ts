import { packageAptSubjects } from './hosts/subjects/package-apt.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** The provider contract for packages of Debian: beside that of the other kinds, on another core. */
describeSubjects('packages on a test host', packageAptSubjects, () => TestHosts.open());
