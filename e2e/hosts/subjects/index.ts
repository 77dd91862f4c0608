import { accountSubjects } from './accounts.ts';
import { alternativesSubjects } from './alternatives.ts';
import { aptRepositorySubjects } from './apt-repository.ts';
import { authorizedKeySubjects } from './authorized-keys.ts';
import { cronSubjects } from './cron.ts';
import { scriptSubjects } from './script.ts';
import { serviceSubjects } from './services.ts';
import type { Subject } from './subject.ts';
import { systemSubjects } from './system.ts';

/** One line for each kind, so that two changes seldom meet. Packages take long: they have a file of their own. */
export const subjects: readonly Subject[] = [
  ...accountSubjects,
  ...authorizedKeySubjects,
  ...cronSubjects,
  ...scriptSubjects,
  ...systemSubjects,
  ...aptRepositorySubjects,
  ...serviceSubjects,
  ...alternativesSubjects,
];
