import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import { type Circumstances, type Difference, nothing, presenceDrift } from '../provider/provider.ts';
import {
  bytesOf,
  type Declared,
  definitionOf,
  differingFields,
  engineOf,
  isAbsent,
  namesOf,
  nanoCpusOf,
  shownField,
} from './definition.ts';
import { isActive, isRunning, isUp, type SeenContainer, type SeenContainers } from './seen.ts';

/** The state before the agent's first change. */
export type ContainerBefore = {
  /**
   * The container that had the name earlier. A container that the agent did not create is kept under another name. A
   * previous container of the agent is removed.
   */
  was: 'absent' | 'ours' | { id: string; running: boolean; restart: string };
  /** Images and volumes that did not exist before the agent needed them. */
  images: string[];
  volumes: string[];
};

/** Changes for which no new container is necessary. */
const inPlace: ReadonlySet<string> = new Set(['state', 'leftover']);

export const replaces = ({ changes }: Pick<Difference, 'changes'>): boolean =>
  changes.some(({ field }) => !inPlace.has(field));

const shortId = (id: string): string => id.slice(0, 12);

export function diffContainer(
  resource: Declared,
  seen: SeenContainers,
  { purpose, restartBy }: Pick<Circumstances, 'purpose' | 'restartBy'>,
): Difference {
  const { current } = seen;
  const isDrift = purpose === 'drift';
  const leftovers = leftoverChanges(seen);
  if (isAbsent(resource)) {
    if (current === null)
      return leftovers.length === 0 ? nothing() : { action: 'remove', changes: leftovers, diff: null };
    if (isDrift) return presenceDrift();
    if (!current.isOurs) expectKept(resource, current, seen);
    return {
      action: 'remove',
      changes: [{ field: 'ensure', from: 'present', to: 'absent' }, ...leftovers],
      diff: null,
      ...(current.isOurs ? {} : { message: 'the container is stopped and kept for a removal' }),
    };
  }
  const [taken] = seen.taken;
  if (taken !== undefined && !isDrift)
    throw new HostFailure(`the agent needs the name ${taken}, but Muster did not create that container: rename it`);
  if (current !== null && !current.isOurs) {
    if (!isDrift) {
      if (resource.body.force !== true)
        throw new HostFailure(
          `Muster did not create the container ${resource.body.name}: remove or rename it; \`force: true\` replaces it, and removal restores it`,
        );
      expectKept(resource, current, seen);
    }
    const changes = [{ field: 'created_by', from: 'others', to: 'muster' }, ...imageChanges(resource, seen)];
    return { action: 'update', changes, diff: null, ...awaited(resource, seen) };
  }
  const changes =
    current === null
      ? [{ field: 'ensure', from: 'absent', to: 'present' }, ...definedChanges(resource, null)]
      : definitionChanges(resource, current, seen);
  const state = stateChange(resource, current);
  changes.push(...(state === null ? [] : [state]), ...leftovers);
  const restarts = restartBy.length > 0 && current !== null && isRunning(current) && state === null;
  if (changes.length === 0 && !restarts) return nothing();
  const action = current === null ? 'create' : restarts && !replaces({ changes }) ? 'restart' : 'update';
  return { action, changes, diff: null, ...(isDrift ? {} : awaited(resource, seen)) };
}

/** @throws HostFailure if a container that the agent did not create cannot be kept */
function expectKept(resource: Declared, current: SeenContainer, { kept }: SeenContainers): void {
  const { name } = resource.body;
  if (kept !== null)
    throw new HostFailure(
      `Muster did not create the container ${name}, and already keeps an earlier one as ${namesOf(name).kept}: remove or rename one of them`,
    );
  // At boot, Podman starts containers whose restart policy it cannot change.
  if (engineOf(resource) === 'podman' && current.restart === 'always')
    throw new HostFailure(
      `the container ${name} starts at every boot, so the agent cannot keep it stopped: remove or rename it`,
    );
}

const leftoverChanges = ({ fresh, old }: SeenContainers): FieldChange[] =>
  fresh === null && old === null
    ? []
    : [{ field: 'leftover', from: fresh === null ? 'former container' : 'unfinished container', to: null }];

/** Returns the missing prerequisites of the container. */
function awaited(
  resource: Declared,
  { missing, image, isSkopeoMissing, missingNetworks }: SeenContainers,
): Pick<Difference, 'awaits'> {
  const { body } = resource;
  const engine = engineOf(resource);
  const awaits: NonNullable<Difference['awaits']> = missing === null ? [] : [missing];
  if (missing === null && body.pull === 'never' && image === null)
    awaits.push({ kind: 'programs', message: `${engine} has no image ${body.image}, and \`pull\` is never` });
  if (isSkopeoMissing)
    awaits.push({
      kind: 'programs',
      message: 'skopeo is not installed, which `pull: always` needs; declare its package before this resource',
    });
  for (const network of missing === null ? missingNetworks : [])
    awaits.push({
      kind: 'programs',
      message: `${engine} has no network ${network}: create it with \`${engine} network create ${network}\``,
    });
  return awaits.length === 0 ? {} : { awaits };
}

/** Returns the declared fields as changes of a container that does not exist. */
function definedChanges(resource: Declared, from: null): FieldChange[] {
  const definition = definitionOf(resource.body);
  return differingFields({}, definition).map((field) => ({ field, from, to: shownField(definition[field]) }));
}

function definitionChanges(resource: Declared, current: SeenContainer, seen: SeenContainers): FieldChange[] {
  const { body } = resource;
  const definition = definitionOf(body);
  const known = current.definition ?? {};
  const changes = new Map<string, FieldChange>();
  const add = (field: string, from: string | null, to: string | null) => {
    if (!changes.has(field)) changes.set(field, { field, from, to });
  };
  for (const field of differingFields(known, definition))
    add(field, shownField(known[field]), shownField(definition[field]));
  for (const { field, from, to } of imageChanges(resource, seen)) add(field, from, to);
  // Values of variables are not shown, because they may be secret.
  if (current.differsInEnvironment) add('environment', null, null);
  if (body.networks != null) {
    const networks = [...new Set(body.networks)].sort();
    if (networks.join() !== current.networks.join())
      add('networks', shownField(current.networks), shownField(networks));
  }
  if (body.restart != null && body.restart !== current.restart) add('restart', current.restart, body.restart);
  if (body.memory != null && bytesOf(body.memory) !== current.memory)
    add('memory', current.memory === 0 ? null : `${current.memory} bytes`, body.memory);
  if (body.cpus != null && nanoCpusOf(body.cpus) !== current.nanoCpus)
    add('cpus', current.nanoCpus === 0 ? null : String(current.nanoCpus / 1e9), body.cpus);
  return [...changes.values()];
}

/** Returns the change to the image that the declared reference names. */
function imageChanges(
  { body }: Declared,
  { current, image, remoteImage, isSkopeoMissing }: SeenContainers,
): FieldChange[] {
  if (current === null) return [];
  const wanted = remoteImage ?? image;
  if (isSkopeoMissing) return [{ field: 'image', from: shortId(current.image), to: body.image ?? null }];
  if (wanted === current.image) return [];
  if (wanted !== null) return [{ field: 'image', from: shortId(current.image), to: shortId(wanted) }];
  return current.isOurs ? [] : [{ field: 'image', from: current.imageName, to: body.image ?? null }];
}

function stateChange({ body }: Declared, current: SeenContainer | null): FieldChange | null {
  const to = body.state ?? 'running';
  if (current === null) return { field: 'state', from: null, to };
  const isAsDeclared = to === 'running' ? isRunning(current) : !isActive(current);
  return isAsDeclared ? null : { field: 'state', from: current.status, to };
}

export function diffContainerRemoval(resource: Declared, before: ContainerBefore, seen: SeenContainers): Difference {
  const { current, missing } = seen;
  const { name } = resource.body;
  if (before.was === 'ours') return nothing('the former container was replaced, so the current one stays');
  if (missing !== null) {
    if (before.was === 'absent' && isAbsent(resource)) return nothing('already removed');
    throw new HostFailure(`the container ${name} can be neither removed nor restored: ${missing.message}`);
  }
  const leftovers = leftoverChanges(seen);
  if (before.was !== 'absent' && current?.id === before.was.id) {
    // The agent was killed while it restored the container.
    const state = before.was.running && !isUp(current);
    const changes = [...(state ? [{ field: 'state', from: current.status, to: 'running' }] : []), ...leftovers];
    return changes.length === 0
      ? nothing('already in its original state')
      : { action: 'remove', changes, diff: null, message: 'restores the earlier container' };
  }
  if (earlierOf(before, seen) === null) {
    const note = before.was === 'absent' ? undefined : 'the earlier container no longer exists';
    const removes = current?.isOurs === true;
    const changes = [...(removes ? [{ field: 'ensure', from: 'present', to: 'absent' }] : []), ...leftovers];
    if (changes.length === 0)
      return nothing(
        current === null ? 'already removed' : 'another container now uses this name; it is left unchanged',
      );
    return { action: 'remove', changes, diff: null, ...(note === undefined ? {} : { message: note }) };
  }
  if (current?.isOurs === false)
    throw new HostFailure(
      `Muster did not create the container ${name}, so the earlier one cannot get its name back: remove or rename it`,
    );
  return {
    action: 'remove',
    changes: [{ field: 'ensure', from: current === null ? 'absent' : 'present', to: 'present' }, ...leftovers],
    diff: null,
    message: 'restores the earlier container',
  };
}

/** Returns the kept container if it is the one that the agent displaced. */
export const earlierOf = ({ was }: ContainerBefore, { kept }: SeenContainers): SeenContainer | null =>
  typeof was === 'object' && kept?.id === was.id ? kept : null;
