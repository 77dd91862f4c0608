import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { diffWritten } from '../file-unix/written-file.ts';
import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import {
  bodyOf,
  dropInFile,
  isEnabled,
  isLive,
  isOwned,
  isUp,
  partChanges,
  runsOnce,
  type SeenService,
  unitFile,
  unitOf,
} from './seen.ts';
import { type Body, fixedAtStart, parseUnit } from './unit-file.ts';

export function diffService(
  resource: ResolvedResource,
  seen: SeenService,
  circumstances: Pick<Circumstances, 'purpose' | 'reloadBy' | 'restartBy' | 'succeeded'>,
): Difference {
  const body = bodyOf(resource);
  const { unit } = seen;
  if (body.ensure === 'absent') return diffAbsent(resource, seen, circumstances);
  const owned = isOwned(body);
  const missing = unit.load === 'not-found';
  if (missing && !owned) return diffMissing(resource, circumstances);
  const masked = unit.load === 'masked' && !owned;
  if (masked && (body.enabled === true || body.running === true) && circumstances.purpose !== 'drift')
    throw new HostFailure(
      `${unitOf(resource)} is masked, so it cannot be started; to allow it, run: systemctl unmask ${unitOf(resource)}`,
    );
  const created = missing && owned;
  const changes: FieldChange[] = created ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  changes.push(...fileChanges(resource, seen, circumstances));
  const replaced = changes.some(({ field }) => fixedAtStart.has(field));
  let note: string | undefined;
  if (body.enabled != null) {
    const is = created ? null : isEnabled(unit);
    // A unit that the agent writes can always be enabled, because it has an [Install] section.
    if (is === null && !owned) note = standing(unit.unitFileState, unitOf(resource));
    else if (is !== body.enabled && !(is === null && !body.enabled))
      changes.push({ field: 'enabled', from: created ? null : String(is ?? false), to: String(body.enabled) });
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
    diff: null,
    ...(note === undefined ? {} : { message: note }),
  };
}

/**
 * Returns the action that the triggers require. A restart includes a reload. A unit that cannot be reloaded is
 * restarted.
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

/** Returns the changes to the unit and its drop-in, as resource fields. */
function fileChanges(
  resource: ResolvedResource,
  { file, dropIn }: SeenService,
  circumstances: Pick<Circumstances, 'purpose'>,
): FieldChange[] {
  const changes: FieldChange[] = [];
  for (const [found, declared] of [
    [isOwned(bodyOf(resource)) ? file : null, unitFile(resource)],
    [dropIn, dropInFile(resource)],
  ] as const) {
    if (found === null) continue;
    const difference = diffWritten(resource, declared, found.seen, circumstances);
    if (difference.action === 'none') continue;
    const to = declared.text === null ? null : parseUnit(declared.text);
    const known = new Set(changes.map(({ field }) => field));
    // A setting that moves from the drop-in to the unit is one change, not two.
    changes.push(...partChanges(difference.changes, found.says, to).filter(({ field }) => !known.has(field)));
  }
  return changes;
}

/** Decides about a missing unit, which an earlier resource may create. Every declared field changes. */
function diffMissing(resource: ResolvedResource, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  const body = bodyOf(resource);
  const declared = dropInFile(resource).text;
  const changes = partChanges(
    declared === null ? [] : [{ field: 'ensure', from: 'absent', to: 'present' }],
    null,
    declared === null ? null : parseUnit(declared),
  );
  if (body.enabled != null) changes.push({ field: 'enabled', from: null, to: String(body.enabled) });
  if (body.running != null) changes.push({ field: 'running', from: null, to: String(body.running) });
  const message = `there is no unit ${unitOf(resource)}; declare \`exec_start\`, or a resource before it that installs the unit`;
  return {
    action: 'update',
    changes: changes.length > 0 ? changes : [{ field: 'ensure', from: 'absent', to: 'present' }],
    diff: null,
    ...(purpose === 'drift' ? {} : { awaits: [{ kind: 'units', message }] }),
  };
}

/** Decides about a unit that is declared absent: stopped, disabled, and without its own file. A packaged file stays. */
function diffAbsent(
  resource: ResolvedResource,
  { unit, file, dropIn }: SeenService,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference {
  const files = [
    ...(file === null ? [] : diffWritten(resource, unitFile(resource), file.seen, circumstances).changes),
    ...diffWritten(resource, dropInFile(resource), dropIn.seen, circumstances).changes,
  ];
  // A masked unit counts as absent, because it cannot be started.
  const masked = file !== null && file.seen.found.type === 'symlink' && file.seen.found.target === '/dev/null';
  const there = (files.length > 0 && !masked) || isLive(unit) || isEnabled(unit) === true;
  if (!there) return nothing();
  return { action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }], diff: null };
}

/**
 * Reports whether a oneshot unit has finished successfully since boot or since its declaration. It then counts as
 * running.
 */
function hasRun(resource: ResolvedResource, { unit }: SeenService, succeeded: Circumstances['succeeded']): boolean {
  const body = bodyOf(resource);
  const once = body.type === 'oneshot' || (body.type == null && runsOnce(unit));
  if (body.running !== true || !once || unit.active === 'failed' || unit.result !== 'success') return false;
  return unit.hasEnded || (succeeded !== null && sameUnit(bodyOf(succeeded), body));
}

const sameUnit = (one: Body, other: Body): boolean => one.running === true && isDeepStrictEqual(one, other);

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
