import type { OffAgent, OffReason } from '@muster/protocol/http';

/** A finding about an agent: why it is out of sync, or that a module has a newer revision. */
export type OffFinding = OffReason | 'outdated';

/** Short words for findings, for labels and summaries such as `3 drifted`. */
export const reasonWords: Readonly<Record<OffFinding, string>> = {
  apply_failed: 'apply failed',
  drifted: 'drifted',
  drift_failed: 'check failed',
  unapplied: 'not applied',
  pending_removals: 'to remove',
  outdated: 'outdated',
};

/** Returns an agent's findings, worst first. */
export const findingsOf = ({ reasons, outdated }: Pick<OffAgent, 'reasons' | 'outdated'>): readonly OffFinding[] =>
  outdated === undefined ? reasons : [...reasons, 'outdated'];

type Outdated = NonNullable<OffAgent['outdated']>;

/** Describes how many applied modules have a newer revision, for example `1 module has a newer revision`. */
export const outdatedText = ({ modules }: Pick<Outdated, 'modules'>): string =>
  `${modules === 1 ? '1 module has' : `${modules} modules have`} a newer revision`;

/** Describes an outdated module, for example `motd: revision 3 applied, newest 4`. */
export const revisionsText = ({ module, revision, newest }: Outdated['examples'][number]): string =>
  `${module}: revision ${revision} applied, newest ${newest}`;
