import { localeSubjects, localesRoot } from './hosts/subjects/locale.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { TestHosts } from './hosts/test-hosts.ts';

describeSubjects('locales on a test host', localeSubjects, async () => TestHosts.open({ base: await localesRoot() }));
