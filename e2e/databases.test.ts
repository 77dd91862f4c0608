import { sampled } from '../agent/src/converge/test/sampled.ts';
import { databaseSubjects, databasesRoot } from './hosts/subjects/databases.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. Each takes as long as a subject of a package. */
const sampleSize = 3;

const open = async () => TestHosts.open({ base: await databasesRoot() });

describeSubjects('databases on a test host', sampled(databaseSubjects, sampleSize), open);
