import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import { decideFiles, unlessLater } from './declared-packages.ts';
import { awaiting, expectChangeable, expectParent, hasEnvironmentToRemove } from './diff.ts';
import type { SeenRequirements } from './requirements.ts';
import { type DeclaredRequirements, environmentOf, type RequirementsBefore } from './seen.ts';

const listed = (texts: readonly string[]): string | null =>
  texts.length === 0 ? null : texts.join(', ').slice(0, 1000);

export function diffRequirements(
  resource: DeclaredRequirements,
  seen: SeenRequirements,
  {
    purpose,
    willBeThere = () => false,
    willChange = () => false,
  }: Pick<Circumstances, 'purpose'> & Partial<Pick<Circumstances, 'willBeThere' | 'willChange'>>,
): Difference {
  const { requirements: path } = resource.body;
  const isMissing = seen.lines === null && seen.fault === null;
  const isLater = isMissing || willChange(path);
  // Without the file, drift cannot be detected.
  if (isLater && purpose === 'drift') return nothing();
  if (!isLater && seen.fault !== null) throw new HostFailure(seen.fault);
  const changes = isLater
    ? [{ field: 'requirements', from: null, to: `the later content of ${path}` }]
    : changesOf(seen);
  if (changes.length === 0) return nothing();
  const difference: Difference = {
    action: seen.environment === 'present' ? 'update' : 'create',
    changes,
    diff: null,
  };
  if (purpose === 'drift') return difference;
  const now = isLater ? { unmanaged: null, unsafeFile: null } : seen;
  expectChangeable(resource, now.unmanaged?.name ?? '', {
    ...{ ...seen, unmanaged: now.unmanaged?.why ?? null, unsafe: seen.unsafe ?? now.unsafeFile },
  });
  expectParent(resource, seen, willBeThere);
  const awaits = [...seen.missing];
  if (isMissing && !willBeThere(path))
    awaits.push({
      kind: 'programs',
      message: `there is no requirements file ${path}; declare the resource that creates it before this one`,
    });
  return { ...difference, ...awaiting({ missing: awaits }) };
}

function changesOf(seen: SeenRequirements): FieldChange[] {
  const { environment, unmet, damaged, broken, isInterrupted } = seen;
  const changes: FieldChange[] = [];
  if (unmet.length > 0)
    changes.push({
      field: 'requirements',
      from: listed(unmet.map(({ name, found }) => `${name} ${found ?? 'absent'}`)),
      to: listed(unmet.map(({ wanted }) => wanted)),
    });
  if (environment !== 'present')
    changes.push({ field: 'virtualenv', from: environment === 'absent' ? null : environment, to: 'present' });
  else if (broken !== null) changes.push({ field: 'virtualenv', from: broken, to: 'present' });
  if (isInterrupted) changes.push({ field: 'files', from: 'interrupted', to: 'complete' });
  else if (damaged.length > 0)
    changes.push({
      field: 'files',
      from: listed(damaged.map(({ name, file }) => `${name} without ${file}`)),
      to: 'complete',
    });
  return changes;
}

export function diffRequirementsRemoval(
  resource: DeclaredRequirements,
  before: RequirementsBefore,
  seen: SeenRequirements,
  circumstances: Partial<Pick<Circumstances, 'willBeThere' | 'willChange'>> = {},
): Difference {
  if (seen.environment === 'other') return nothing(`kept: ${environmentOf(resource)} is not a virtual environment`);
  const { later } = decideFiles(seen, circumstances);
  const removal = later.length === 0 ? seen.removal : seen.unlisted;
  const { restore = [], uninstall = [], kept = [], marks = [] } = removal ?? {};
  const changes: FieldChange[] = [];
  if (restore.length > 0 || uninstall.length > 0)
    changes.push({
      field: 'requirements',
      from: listed([...restore, ...uninstall].map(({ name, from }) => `${name} ${from ?? 'absent'}`)),
      to: listed(restore.map(({ name, to }) => `${name} ${to}`)),
    });
  if (marks.length > 0) changes.push({ field: 'requested', from: listed(marks.map(({ name }) => name)), to: null });
  if (seen.isInterrupted) changes.push({ field: 'files', from: 'interrupted', to: 'complete' });
  if (changes.length === 0 && hasEnvironmentToRemove(before, seen))
    changes.push({ field: 'virtualenv', from: seen.environment, to: null });
  const stays = kept.length === 0 ? '' : `kept: other packages may need ${listed(kept)}`;
  if (changes.length === 0) return nothing(stays || 'already in its original state');
  if (seen.broken !== null && seen.missing.length === 0)
    throw new HostFailure(`${environmentOf(resource)}: ${seen.broken}: move it away, and apply again`);
  if (seen.unsafe !== null) throw new HostFailure(seen.unsafe);
  return {
    action: 'remove',
    changes,
    diff: null,
    message: [unlessLater('restores the original state', later, 'the packages'), ...(stays === '' ? [] : [stays])].join(
      '; ',
    ),
    ...awaiting(seen),
  };
}
