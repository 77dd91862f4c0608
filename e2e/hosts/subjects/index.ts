import { accountSubjects } from './accounts.ts';
import { alternativesSubjects } from './alternatives.ts';
import { aptRepositorySubjects } from './apt-repository.ts';
import { authorizedKeySubjects } from './authorized-keys.ts';
import { cronSubjects } from './cron.ts';
import { scriptSubjects } from './script.ts';
import { serviceSubjects } from './services.ts';
import type { Subject } from './subject.ts';
import { systemSubjects } from './system.ts';

/**
 * Subjects by kind, one line for each kind, so that changes seldom conflict. Packages have their own file, because they
 * take long.
 */
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
