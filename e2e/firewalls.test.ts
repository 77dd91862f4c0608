import { sampled } from '../lib/test/sampled.ts';
import { firewallsRoot } from './hosts/firewalls/firewalls-root.ts';
import { firewalldSubjects, ufwSubjects } from './hosts/firewalls/subjects.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. */
const sampleSize = 2;

const open = async () => TestHosts.open({ base: await firewallsRoot() });

describeSubjects('firewalls on a test host', sampled([...ufwSubjects, ...firewalldSubjects], sampleSize), open);
