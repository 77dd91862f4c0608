import type { FieldChange } from '@muster/protocol';
import type { WantedService } from '../../host/containers/compose-program.ts';
import { HostFailure } from '../../host/failure.ts';
import { diffFile } from '../file-unix/diff.ts';
import { diffFileRemoval } from '../file-unix/removal.ts';
import {
  type Circumstances,
  type ContentCopies,
  type Difference,
  nothing,
  presenceDrift,
} from '../provider/provider.ts';
import { type ComposeBefore, type Former, withFormerPath } from './before.ts';
import { type Declared, engineOf, fileOf, isAbsent } from './declared.ts';
import { hasDefinition, isOwnFile, isOwnProject, ownObjects } from './mark.ts';
import { isUp, type SeenContainer, type SeenProject } from './seen.ts';

/** Changes for which Compose must run. The others concern only the file. */
const ofServices: ReadonlySet<string> = new Set(['services', 'configuration', 'images']);

export const runsCompose = ({ changes }: Pick<Difference, 'changes'>): boolean =>
  changes.some(({ field }) => ofServices.has(field));

const maxShown = 500;
const shownList = (words: readonly string[]): string => {
  const text = [...new Set(words)].join(', ');
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
};

const membersOf = (containers: readonly SeenContainer[], service: string): SeenContainer[] =>
  containers.filter((one) => one.service === service);

/** Returns the containers of services that are not declared, or not enabled. */
export const undeclared = (
  { containers }: Pick<SeenProject, 'containers'>,
  names: readonly string[],
): SeenContainer[] => containers.filter(({ service }) => !names.includes(service));

type DiffCircumstances = Pick<Circumstances, 'purpose' | 'restartBy'> & Partial<Circumstances>;

/** @throws HostFailure if the project must not be changed, unless this is a drift check */
export function diffProject(resource: Declared, seen: SeenProject, circumstances: DiffCircumstances): Difference {
  const { purpose, restartBy } = circumstances;
  const isDrift = purpose === 'drift';
  if (!isDrift && seen.mark !== null && seen.mark.path !== resource.body.path)
    throw movedFile(resource, seen.mark.path);
  if (!isDrift) expectNoRival(resource, seen);
  const file = diffFile(fileOf(resource), seen.file, circumstances);
  if (isAbsent(resource)) return diffAbsent(resource, seen, file, isDrift);
  const later = laterInputs(seen, circumstances);
  const services = serviceChanges(resource, seen, later);
  const isNew = seen.containers.length === 0 && services.length > 0;
  const changes = [
    ...(isNew ? [{ field: 'ensure', from: 'absent', to: 'present' }] : []),
    ...file.changes.filter(({ field }) => field !== 'ensure'),
    ...services,
  ];
  const restarts = restartBy.length > 0 && !isNew && seen.containers.some(isUp);
  if (changes.length === 0 && !restarts) return nothing();
  if (!isDrift) {
    expectTakenOver(resource, seen);
    expectOwnFile(resource, seen, file);
  }
  const awaits = [...(file.awaits ?? []), ...awaited(resource, seen, later)];
  return {
    action: isNew ? 'create' : restarts ? 'restart' : 'update',
    changes,
    diff: file.diff,
    ...(isDrift || awaits.length === 0 ? {} : { awaits }),
  };
}

/** Returns the files from which Compose will read other definitions, because earlier steps of a plan change them. */
const laterInputs = ({ inputs }: SeenProject, { purpose, willChange }: DiffCircumstances): string[] =>
  purpose === 'plan' && willChange !== undefined ? inputs.filter((path) => willChange(path)) : [];

/** @throws HostFailure if another resource has the Compose file, because its removal would delete or restore the file */
function expectNoRival({ body: { path } }: Declared, { rival }: SeenProject): void {
  if (rival === null) return;
  throw new HostFailure(
    `${path} is managed as ${rival.label} here: remove that resource and apply before you declare the project`,
  );
}

function diffAbsent(resource: Declared, seen: SeenProject, file: Difference, isDrift: boolean): Difference {
  const { containers, networks, mark, missing } = seen;
  const exists = containers.length > 0 || ownObjects(mark, 'networks', networks).length > 0;
  // Without its program, an engine has no containers. If only its daemon does not respond, it may have some.
  const isUnknown = missing?.kind === 'units';
  if (!exists && !isUnknown && file.action === 'none') return nothing();
  if (isDrift) return presenceDrift();
  expectTakenOver(resource, seen);
  expectOwnFile(resource, seen, file);
  return {
    action: 'remove',
    changes: [
      { field: 'ensure', from: exists || file.action !== 'none' ? 'present' : 'unknown', to: 'absent' },
      ...file.changes.filter(({ field }) => field !== 'ensure'),
    ],
    diff: file.diff,
    ...(isUnknown ? { awaits: [missing] } : {}),
  };
}

export const movedFile = ({ body: { name, path } }: Declared, former: string): HostFailure =>
  new HostFailure(
    `Muster made the project ${name} from ${former}, and does not move it to ${path}: declare the former \`path\`, or remove the resource and apply before you declare it with another \`path\``,
  );

/** @throws HostFailure if the agent did not write the Compose file, and may not change it */
function expectOwnFile(
  { body: { path, force } }: Declared,
  { mark, file: { found } }: SeenProject,
  file: Difference,
): void {
  const isReplaced = file.changes.some(({ field }) => ['content', 'symlink', 'ensure'].includes(field));
  if (found.type === 'absent' || !isReplaced || force === true || isOwnFile(mark, path, found)) return;
  throw new HostFailure(
    `Muster did not write ${path}: move that file away; \`force: true\` changes it, and removal restores it`,
  );
}

/** @throws HostFailure if the agent did not start the project, and may not change it */
function expectTakenOver(resource: Declared, { containers, mark, former }: SeenProject): void {
  const { name, path, force } = resource.body;
  if (containers.length === 0 || isOwnProject(mark, path, containers)) return;
  expectSameFile(resource, containers);
  if (force !== true)
    throw new HostFailure(
      `Muster did not start the project ${name}: remove its containers; \`force: true\` takes it over, and removal restores it if ${path} alone describes its containers`,
    );
  if (isAbsent(resource) && former === null)
    throw new HostFailure(
      `Muster did not start the project ${name}, and could not restore it, because ${path} alone does not describe its containers: remove them by hand`,
    );
}

/** @throws HostFailure if a container was created from another Compose file */
function expectSameFile({ body: { name, path } }: Declared, containers: readonly SeenContainer[]): void {
  const other = containers.find(({ file }) => file !== path);
  if (other === undefined) return;
  throw new HostFailure(
    `containers of the project ${name} run from ${other.file === '' ? 'another file' : other.file}, and Muster did not start them: declare that \`path\`, or remove these containers`,
  );
}

/** Returns the missing prerequisites of the project. */
function awaited(
  { body }: Declared,
  { missing, unread, wanted, images }: SeenProject,
  later: readonly string[],
): NonNullable<Difference['awaits']> {
  if (missing !== null) return [missing];
  // Earlier resources may create files that the Compose file names.
  if (unread !== null) return later.length > 0 ? [] : [{ kind: 'programs', message: unread }];
  if (body.pull !== 'never') return [];
  return missingImages(wanted ?? [], { images }).map((image) => ({ kind: 'programs', message: noImage(image) }));
}

const noImage = (image: string): string => `there is no image ${image} on this machine, and \`pull\` is never`;

/** Returns the images of services that the machine does not have. */
export const missingImages = (
  services: readonly { image: string }[],
  { images }: Pick<SeenProject, 'images'>,
): string[] => [...new Set(services.map(({ image }) => image))].filter((image) => !Object.hasOwn(images, image));

/** Returns the differences between the declared services and their containers. */
function serviceChanges(resource: Declared, seen: SeenProject, later: readonly string[]): FieldChange[] {
  const { wanted, containers, images, mark, missing, unread } = seen;
  if (wanted === null) {
    if (missing === null && unread === null) return [];
    return [{ field: 'services', from: containers.length === 0 ? null : 'unknown', to: 'running' }];
  }
  const jobs = resource.body.jobs ?? [];
  const changes: FieldChange[] = [];
  if (containers.length === 0)
    return wanted.some(({ count }) => count > 0) ? [{ field: 'services', from: null, to: 'running' }] : [];
  const isAsDefined = (service: WantedService, one: SeenContainer) => hasDefinition(service, one, mark?.services ?? {});
  const others = wanted.filter(
    (service) => !membersOf(containers, service.name).every((one) => isAsDefined(service, one)),
  );
  if (others.length > 0)
    changes.push({ field: 'configuration', from: shownList(others.map(({ name }) => name)), to: 'as declared' });
  else if (later.length > 0)
    changes.push({ field: 'configuration', from: null, to: `with the later content of ${shownList(later)}` });
  const outdated = wanted.filter(
    (service) =>
      !others.includes(service) &&
      Object.hasOwn(images, service.image) &&
      membersOf(containers, service.name).some((one) => images[service.image] !== one.image),
  );
  if (outdated.length > 0)
    changes.push({ field: 'images', from: shownList(outdated.map(({ name }) => name)), to: 'as declared' });
  const problems = [
    ...wanted.flatMap((service) =>
      problemsOf(service, membersOf(containers, service.name), jobs.includes(service.name)),
    ),
    ...undeclared(
      seen,
      wanted.map(({ name }) => name),
    ).map(({ service }) => `${service}: not declared`),
  ];
  if (problems.length > 0) changes.push({ field: 'services', from: shownList(problems), to: 'running' });
  return changes;
}

function problemsOf(
  { name, count }: Pick<WantedService, 'name' | 'count'>,
  members: SeenContainer[],
  isJob: boolean,
): string[] {
  const wrong = members.filter((one) => !isAsWanted(one, isJob));
  return [
    ...(members.length === count ? [] : [`${name}: ${members.length} of ${count}`]),
    ...wrong.map(({ status }) => `${name}: ${status}`),
  ];
}

/** Reports whether the container runs, or has ended as a job should. */
const isAsWanted = ({ status, exitCode }: Pick<SeenContainer, 'status' | 'exitCode'>, isJob: boolean): boolean =>
  status === 'running' || (isJob && status === 'exited' && exitCode === 0);

export function diffProjectRemoval(
  declared: Declared,
  before: ComposeBefore,
  seen: SeenProject,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const { was } = before;
  if (was === 'ours') return nothing('the project was changed, so it stays');
  const difference = removalOf(withFormerPath(declared, before, seen.mark), { ...before, was }, seen, copies);
  // The mark is removed in any case, so that a later project of this name does not count as the agent's.
  return difference.action === 'none' && seen.mark !== null ? { ...difference, action: 'remove' } : difference;
}

function removalOf(
  resource: Declared,
  before: ComposeBefore & { was: Exclude<ComposeBefore['was'], 'ours'> },
  seen: SeenProject,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const { missing, mark, networks, volumes } = seen;
  const { name, remove_volumes } = resource.body;
  const former = Array.isArray(before.was) ? formerChanges(before.was, seen) : [];
  const isRestored = Array.isArray(before.was) && former.length === 0;
  if (missing !== null && !isRestored && !(before.was === 'absent' && isAbsent(resource)))
    throw new HostFailure(`the project ${name} can be neither removed nor restored: ${missing.message}`);
  const file = diffFormerFile(resource, before, seen, copies);
  const changes = file.changes.filter(({ field }) => field !== 'ensure');
  if (before.was === 'absent') {
    const containers = toRemove(resource, seen);
    const volumesToRemove = remove_volumes === true ? ownObjects(mark, 'volumes', volumes) : [];
    const objects = [...containers, ...ownObjects(mark, 'networks', networks), ...volumesToRemove];
    if (objects.length === 0 && file.action === 'none') return nothing(file.message ?? 'already removed');
    return {
      action: 'remove',
      changes: [{ field: 'ensure', from: 'present', to: 'absent' }, ...changes],
      diff: file.diff,
      ...(file.message === undefined ? {} : { message: file.message }),
    };
  }
  if (before.was === 'kept') {
    const message = 'Muster did not start the containers, and cannot restore them, so they stay';
    return file.action === 'none'
      ? nothing(message)
      : { action: 'remove', changes: file.changes, diff: file.diff, message };
  }
  expectSameFile(resource, seen.containers);
  const [lacking] = former.length > 0 && resource.body.pull === 'never' ? missingImages(before.was, seen) : [];
  if (lacking !== undefined) throw new HostFailure(`the project ${name} cannot be restored: ${noImage(lacking)}`);
  if (former.length === 0 && file.action === 'none') return nothing('already in its original state');
  return {
    action: 'remove',
    changes: [...file.changes, ...former],
    diff: file.diff,
    message: 'restores the earlier services',
  };
}

/** Decides how a removal restores the Compose file. A file that the agent did not write stays, unless `force` is declared. */
export function diffFormerFile(
  resource: Declared,
  before: ComposeBefore,
  { mark, file, rival }: Pick<SeenProject, 'mark' | 'file' | 'rival'>,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const { path, force } = resource.body;
  const isForeign = file.found.type !== 'absent' && !isOwnFile(mark, path, file.found);
  if (before.file === null) return nothing();
  if (rival?.stays === true) return nothing(`${rival.label} declares ${path}, so it stays`);
  if (isForeign && force !== true) return nothing(`Muster did not write ${path}, so it stays`);
  return diffFileRemoval(fileOf(resource), before.file.before, file, copies);
}

/**
 * Returns the containers that a removal removes.
 * @throws HostFailure if others started some, unless the project is declared absent and is therefore not the agent's
 */
export function toRemove(
  resource: Declared,
  { containers, mark }: Pick<SeenProject, 'containers' | 'mark'>,
): SeenContainer[] {
  const { name, path } = resource.body;
  if (containers.length === 0 || isOwnProject(mark, path, containers)) return [...containers];
  if (isAbsent(resource)) return [];
  expectSameFile(resource, containers);
  throw new HostFailure(`Muster did not start the containers of the project ${name}: remove them by hand`);
}

/** Returns the differences between the earlier services and the current containers. */
export function formerChanges(former: readonly Former[], seen: Pick<SeenProject, 'containers'>): FieldChange[] {
  const problems = [
    ...former.flatMap(({ service, hash, count, running }) => {
      const members = membersOf(seen.containers, service);
      const isSame = members.length === count && members.every((one) => one.hash === hash);
      return isSame && members.some(isUp) === running ? [] : [service];
    }),
    ...undeclared(
      seen,
      former.map(({ service }) => service),
    ).map(({ service }) => service),
  ];
  return problems.length === 0 ? [] : [{ field: 'services', from: shownList(problems), to: 'as before' }];
}

/** Reasons why the services are not ready: those that may still become ready, and those that failed. */
interface Readiness {
  waiting: string[];
  failed: string[];
}

/** Reports which services are not running, or not healthy. */
export function readiness(
  resource: Declared,
  wanted: readonly WantedService[],
  containers: readonly SeenContainer[],
): Readiness {
  const jobs = resource.body.jobs ?? [];
  const found: Readiness = { waiting: [], failed: [] };
  for (const { name, count } of wanted) {
    const members = membersOf(containers, name);
    if (members.length !== count) found.waiting.push(`${name} has ${members.length} of ${count} containers`);
    for (const one of members) {
      if (!isAsWanted(one, jobs.includes(name))) {
        const text = `${name} ${one.status === 'exited' ? `exited with ${one.exitCode}` : `is ${one.status}`}`;
        (one.status === 'exited' || one.status === 'dead' ? found.failed : found.waiting).push(
          `${text}; see \`${engineOf(resource)} logs ${one.id.slice(0, 12)}\``,
        );
      } else if (one.status === 'running' && one.health !== '' && one.health !== 'healthy')
        found.waiting.push(`${name} is ${one.health}`);
    }
  }
  return found;
}
