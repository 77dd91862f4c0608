import { accountSubjects } from './accounts.ts';
import { aptRepositorySubjects } from './apt-repository.ts';
import { authorizedKeySubjects } from './authorized-keys.ts';
import { cronSubjects } from './cron.ts';
import { packageAptSubjects } from './package-apt.ts';
import { scriptSubjects } from './script.ts';
import { serviceSubjects } from './services.ts';
import type { Subject } from './subject.ts';
import { systemSubjects } from './system.ts';

/** One line for each kind, so that two changes seldom meet. */
export const subjects: readonly Subject[] = [
  ...accountSubjects,
  ...authorizedKeySubjects,
  ...cronSubjects,
  ...scriptSubjects,
  ...systemSubjects,
  ...packageAptSubjects,
  ...aptRepositorySubjects,
  ...serviceSubjects,
];
