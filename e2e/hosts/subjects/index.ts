import { httpObjectSubjects } from '../http-api/subjects.ts';
import { accountSubjects } from './accounts.ts';
import { alternativesSubjects } from './alternatives.ts';
import { aptRepositorySubjects } from './apt-repository.ts';
import { authorizedKeySubjects } from './authorized-keys.ts';
import { cronSubjects } from './cron.ts';
import { dnfRepositorySubjects } from './dnf-repository.ts';
import { firewallRuleSubjects } from './firewall-rule.ts';
import { kernelModuleSubjects } from './kernel-module.ts';
import { knownHostSubjects } from './known-host.ts';
import { limitsSubjects } from './limits.ts';
import { mountUnixSubjects } from './mount-unix.ts';
import { scriptSubjects } from './script.ts';
import { serviceSubjects } from './services.ts';
import { kindOf, type Subject } from './subject.ts';
import { swapSubjects } from './swap.ts';
import { systemSubjects } from './system.ts';
import { unitSystemdSubjects } from './unit-systemd.ts';

/** The subjects of all kinds except packages, whose slow tests run in parallel in separate files. */
export const subjects: readonly Subject[] = [
  ...accountSubjects,
  ...authorizedKeySubjects,
  ...cronSubjects,
  ...scriptSubjects,
  ...systemSubjects,
  ...aptRepositorySubjects,
  ...dnfRepositorySubjects,
  ...serviceSubjects,
  ...alternativesSubjects,
  ...knownHostSubjects,
  ...limitsSubjects,
  ...unitSystemdSubjects,
  ...firewallRuleSubjects,
  ...kernelModuleSubjects,
  ...mountUnixSubjects,
  ...swapSubjects,
  ...httpObjectSubjects,
];

/** Distributes the subjects among shares by kind, and returns one share. */
export function shareOf(all: readonly Subject[], share: number, shares: number): readonly Subject[] {
  const kinds = Array.from(new Set(all.map(kindOf)));
  return all.filter((subject) => kinds.indexOf(kindOf(subject)) % shares === share);
}
