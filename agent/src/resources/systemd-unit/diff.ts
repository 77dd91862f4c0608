import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { writtenPart } from '../file-unix/written-file.ts';
import { type Circumstances, changedFields, type Difference, nothing, presenceDrift } from '../provider/provider.ts';
import { bodyOf, dropInFile, isOwned, serviceOf, unitFile, unitOf } from './declared.ts';
import { isEnabled, isLive, isMask, isUp, runsOnce, type SeenService, unitChanges } from './seen.ts';
import { fixedAtStart, parseUnit } from './unit-file.ts';

export function diffService(
  resource: ResolvedResource,
  seen: SeenService,
  circumstances: Pick<Circumstances, 'purpose' | 'reloadBy' | 'restartBy' | 'succeeded'>,
): Difference {
  const body = bodyOf(resource);
  const { unit } = seen;
  if (body.ensure === 'absent') return diffAbsent(resource, seen, circumstances);
  const owned = isOwned(resource);
  const missing = unit.load === 'not-found';
  if (missing && !owned) return diffMissing(resource, circumstances);
  const unmasked = !owned && seen.file !== null;
  const masked = unit.load === 'masked' && !owned && !unmasked;
  if (masked && (body.enabled === true || body.running === true) && circumstances.purpose !== 'drift')
    throw new HostFailure(
      `${unitOf(resource)} is masked, so it cannot be started; to allow it, run: systemctl unmask ${unitOf(resource)}`,
    );
  const created = missing && owned;
  const changes: FieldChange[] = created ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  const files = fileChanges(resource, seen, circumstances);
  changes.push(...files.changes);
  const replaced = restartsFor(resource, changes);
  let note: string | undefined;
  if (body.enabled != null) {
    // A link may remain from an earlier unit of this name.
    const is = created && body.enabled ? null : isEnabled(unit);
    // A unit that the agent writes can always be enabled, because it has an [Install] section.
    if (is === null && !owned) note = standing(unit.unitFileState, unitOf(resource));
    else if (is !== body.enabled && !(is === null && !body.enabled))
      changes.push({
        field: 'enabled',
        from: created && is === null ? null : String(is ?? false),
        to: String(body.enabled),
      });
  }
  const runs = isUp(unit);
  const done = !runs && hasRun(resource, seen, circumstances.succeeded);
  const starts = body.running === true && !runs && !done;
  if (starts || (body.running === false && isLive(unit))) {
    changes.push({ field: 'running', from: created ? null : String(!starts), to: String(body.running) });
    if (unit.active === 'failed') note = `it had failed: ${howItEnded(seen.unit)}`;
    else if (unit.sub === 'auto-restart') note = `it keeps exiting: ${howItEnded(seen.unit)}`;
  }
  const process =
    (runs || done) && body.running !== false ? requiredProcess(replaced, runs && unit.canReload, circumstances) : null;
  if (changes.length === 0 && process === null) return nothing(note);
  return {
    action: created ? 'create' : (process ?? 'update'),
    changes,
    diff: files.diff,
    ...(note === undefined ? {} : { message: note }),
  };
}

/**
 * Returns the action that a changed unit file or the triggers require; null if they require none. A restart includes a
 * reload. A unit that cannot be reloaded is restarted.
 * @param replaced whether the unit file changed in a way that requires a restart
 */
function requiredProcess(
  replaced: boolean,
  canReload: boolean,
  { reloadBy, restartBy }: Pick<Circumstances, 'reloadBy' | 'restartBy'>,
): 'restart' | 'reload' | null {
  if (replaced || restartBy.length > 0) return 'restart';
  if (reloadBy.length === 0) return null;
  return canReload ? 'reload' : 'restart';
}

/** Types of units for which a restart has no effect except that it stops their members. */
const groups = /\.(target|slice)$/;

/** Reports whether a running unit must be restarted for the changes to take effect. */
export const restartsFor = (resource: ResolvedResource, changes: readonly FieldChange[]): boolean =>
  !groups.test(unitOf(resource)) &&
  unitFile(resource).symlink === undefined &&
  changes.some(({ field }) => fixedAtStart.has(field));

/** Returns the changes to the unit and its drop-in, as resource fields. */
function fileChanges(
  resource: ResolvedResource,
  { file, dropIn }: SeenService,
  circumstances: Pick<Circumstances, 'purpose'>,
): Pick<Difference, 'changes' | 'diff'> {
  const changes: FieldChange[] = [];
  const diffs: string[] = [];
  for (const [found, declared] of [
    [file, unitFile(resource)],
    [dropIn, dropInFile(resource)],
  ] as const) {
    if (found === null) continue;
    const difference = writtenPart(resource, declared).diff(found.seen, circumstances);
    if (difference.action === 'none') continue;
    const to = declared.text === null ? null : parseUnit(declared.text);
    const known = changedFields({ changes });
    const here = unitChanges(resource, difference.changes, found.says, to);
    // A setting that moves from the drop-in to the unit is one change, not two.
    changes.push(...here.filter(({ field }) => !known.has(field)));
    if (serviceOf(resource) === null && difference.diff !== null) diffs.push(difference.diff);
  }
  return { changes, diff: diffs.length === 0 ? null : diffs.join('') };
}

/** Decides about a missing unit, which an earlier resource may create. Every declared field changes. */
function diffMissing(resource: ResolvedResource, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  const body = bodyOf(resource);
  const declared = dropInFile(resource).text;
  const changes = unitChanges(
    resource,
    declared === null ? [] : [{ field: 'ensure', from: 'absent', to: 'present' }],
    null,
    declared === null ? null : parseUnit(declared),
  );
  if (body.enabled != null) changes.push({ field: 'enabled', from: null, to: String(body.enabled) });
  if (body.running != null) changes.push({ field: 'running', from: null, to: String(body.running) });
  const message = `there is no unit ${unitOf(resource)}; declare ${serviceOf(resource) === null ? '`content`' : '`exec_start`'}, or a resource before it that installs the unit`;
  return {
    action: 'update',
    changes: changes.length > 0 ? changes : [{ field: 'ensure', from: 'absent', to: 'present' }],
    diff: null,
    ...(purpose === 'drift' ? {} : { awaits: [{ kind: 'units', message }] }),
  };
}

/**
 * Decides about a unit that is declared absent: stopped, disabled, and without its own file. A packaged file is kept.
 */
function diffAbsent(
  resource: ResolvedResource,
  { unit, file, dropIn }: SeenService,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference {
  const files = [
    ...(file === null ? [] : writtenPart(resource, unitFile(resource)).diff(file.seen, circumstances).changes),
    ...writtenPart(resource, dropInFile(resource)).diff(dropIn.seen, circumstances).changes,
  ];
  // A masked unit counts as absent, because it cannot be started.
  const masked = file !== null && isMask(file.seen);
  const enabled = unit.load !== 'not-found' && isEnabled(unit) === true;
  if ((files.length === 0 || masked) && !isLive(unit) && !enabled) return nothing();
  return presenceDrift();
}

/**
 * Reports whether a oneshot unit has finished successfully since boot or since its declaration. Such a unit counts as
 * running.
 */
function hasRun(resource: ResolvedResource, { unit }: SeenService, succeeded: Circumstances['succeeded']): boolean {
  const type = serviceOf(resource)?.type;
  const once = type === 'oneshot' || (type == null && runsOnce(unit));
  if (bodyOf(resource).running !== true || !once || unit.active === 'failed' || unit.result !== 'success') return false;
  return unit.hasEnded || (succeeded !== null && isDeepStrictEqual(succeeded.body, resource.body));
}

export const howItEnded = ({ result, exitStatus }: SeenService['unit']): string =>
  result === 'exit-code'
    ? `it ended with status ${exitStatus}`
    : result === 'success'
      ? 'it ended'
      : `systemd reports ${result}`;

function standing(word: string, name: string): string {
  if (word === 'transient') return `${name} is transient, so it can be neither enabled nor disabled`;
  const reason =
    word === 'generated'
      ? 'because a generator creates it at every boot'
      : 'because other units start it or name it in their [Install] sections';
  return `${name} is ${word}: it can be neither enabled nor disabled ${reason}`;
}
