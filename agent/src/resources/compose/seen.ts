import { resolve } from 'node:path';
import { maximumComposePath } from '@muster/protocol/module';
import {
  lacksService,
  pathOfCompose,
  type WantedService,
  wantedServices,
} from '../../host/containers/compose-program.ts';
import {
  EngineUnreachable,
  inspectObjects,
  labelledObjects,
  missingEngine,
  type NoEngine,
} from '../../host/containers/engine.ts';
import { type InspectedContainer, inspectedContainer, inspectedImage } from '../../host/containers/inspected.ts';
import { HostFailure } from '../../host/failure.ts';
import { asCreated } from '../../host/files/decide-ownership.ts';
import { imageSpellings } from '../container/seen.ts';
import { sameContent } from '../file-unix/diff.ts';
import { observeFileForRemoval } from '../file-unix/removal.ts';
import { look, type SeenFile } from '../file-unix/seen.ts';
import { textOf } from '../file-unix/written-file.ts';
import type { Circumstances, Machine } from '../provider/provider.ts';
import { type ComposeBefore, type Former, withFormerPath } from './before.ts';
import {
  checkComposeFile,
  type Declared,
  engineOf,
  fileOf,
  hiddenIn,
  inputsOf,
  isAbsent,
  labels,
  projectOf,
} from './declared.ts';
import { isOwnProject, type Mark, readMark } from './mark.ts';
import { expectTrusted, runTrusted } from './trust.ts';

/** A container of the project, without its environment. */
export interface SeenContainer {
  id: string;
  service: string;
  hash: string;
  status: string;
  startedAt: string;
  exitCode: number;
  health: string;
  /** Id of its image. */
  image: string;
  /** Path of the Compose file that it was created from; several are joined with commas. */
  file: string;
}

export interface SeenProject {
  /** Why the project cannot be compared. */
  missing: NoEngine | null;
  /** Why Compose could not read the declared file; null if it could, or was not asked. */
  unread: string | null;
  /** Paths of the other files from which Compose reads definitions. */
  inputs: string[];
  /** Another resource that has its file at the path of the Compose file. */
  rival: { label: string; stays: boolean } | null;
  file: SeenFile;
  /** Null if the agent made nothing of the project. */
  mark: Mark | null;
  /** The declared services; null if Compose could not read them. */
  wanted: WantedService[] | null;
  containers: SeenContainer[];
  /** Ids of the images that the machine has, of those of `wanted`, or of the services that a removal restores. */
  images: Record<string, string>;
  networks: string[];
  volumes: string[];
  /** The services as removal would start them again; null if the file on the machine does not describe them. */
  former: Former[] | null;
}

type Purpose = Circumstances['purpose'];

/** @throws HostFailure if Compose would read what other users can change */
export async function lookAtProject(resource: Declared, purpose: Purpose, machine: Machine): Promise<SeenProject> {
  expectTrusted(resource.body.path, machine);
  const seen = await lookAtObjects(resource, await lookAtFile(resource, machine), purpose, machine);
  if (seen.missing !== null) return seen;
  const isForeign = !isOwnProject(seen.mark, resource.body.path, seen.containers);
  const former =
    isForeign && seen.containers.length > 0 && purpose !== 'drift'
      ? await formerServices(resource, seen, machine)
      : null;
  if (isAbsent(resource)) return { ...seen, former };
  const text = await declaredText(resource, seen.file, purpose, machine);
  if (text === null) return seen;
  const found = {
    ...{ ...seen, former, inputs: inputsOf(resource, text) },
    // For the diff of the file.
    file: resource.source === undefined ? seen.file : { ...seen.file, source: Buffer.from(text) },
  };
  try {
    const wanted = await declaredServices(resource, text, machine);
    return { ...found, wanted, images: await imagesOf(resource, wanted, machine) };
  } catch (error) {
    if (!(error instanceof HostFailure) || purpose === 'drift') throw error;
    // Earlier resources may create files that the Compose file names.
    return { ...found, unread: error.message };
  }
}

/**
 * Returns the services of a Compose file, with the declared variables and profiles.
 * @param text null for the file on the machine
 * @param known the text of that file, if it is known
 * @throws HostFailure with the message of Compose, unless it may contain a secret
 */
export const declaredServices = (
  resource: Declared,
  text: string | null,
  machine: Machine,
  known: string | null = text,
): Promise<WantedService[]> =>
  runTrusted(resource, known, machine, () =>
    wantedServices(projectOf(resource, text), { hidden: hiddenIn(resource), warn: machine.warn }, machine),
  );

/**
 * Observes the project for its removal, or for a restoration of the services before.
 * @throws HostFailure if other users can replace the Compose file
 */
export async function lookForRemoval(
  declared: Declared,
  before: ComposeBefore,
  machine: Machine,
): Promise<SeenProject> {
  const resource = withFormerPath(declared, before, readMark(declared, machine));
  if (before.file !== null || Array.isArray(before.was)) expectTrusted(resource.body.path, machine);
  const file =
    before.file === null
      ? await lookAtFile(resource, machine)
      : await observeFileForRemoval(fileOf(resource), before.file.before, machine);
  const seen = await lookAtObjects(resource, file, 'removal', machine);
  if (seen.missing !== null || !Array.isArray(before.was)) return seen;
  return { ...seen, missing: missingCompose(resource), images: await imagesOf(resource, before.was, machine) };
}

const lookAtFile = (resource: Declared, machine: Machine): SeenFile | Promise<SeenFile> =>
  look(fileOf(resource), machine, true, resource.source === undefined ? [] : [resource.source.size]);

async function lookAtObjects(
  resource: Declared,
  file: SeenFile,
  purpose: Purpose | 'removal',
  machine: Machine,
): Promise<SeenProject> {
  const engine = engineOf(resource);
  const common = {
    file,
    mark: readMark(resource, machine),
    rival: rivalOf(resource, machine),
    unread: null,
    inputs: [],
  };
  const nothingSeen = { wanted: null, containers: [], images: {}, networks: [], volumes: [], former: null };
  const noEngine = missingEngine(engine);
  const missing = noEngine ?? (isAbsent(resource) || purpose === 'removal' ? null : missingCompose(resource));
  if (noEngine !== null) return { ...nothingSeen, ...common, missing };
  const label = { name: labels.project, value: resource.body.name };
  try {
    return {
      ...{ ...nothingSeen, ...common, missing },
      containers: await containersOf(resource, machine),
      networks: await labelledObjects(engine, 'network', label, machine),
      volumes: await labelledObjects(engine, 'volume', label, machine),
    };
  } catch (error) {
    // An earlier resource may start the daemon.
    if (!(error instanceof EngineUnreachable) || purpose === 'drift' || purpose === 'removal') throw error;
    return { ...nothingSeen, ...common, missing: { kind: 'units', message: error.message } };
  }
}

/** Returns another resource that has its file at the path, preferably one that keeps it. */
function rivalOf(resource: Declared, machine: Machine): SeenProject['rival'] {
  const others = machine.ownersOf(resource.body.path).filter(({ key }) => key !== resource.key);
  // Another project cannot have started with the file while this one has it.
  const found = others.find(({ type, stays }) => stays && type !== 'compose') ?? others[0];
  return found === undefined
    ? null
    : { label: `${found.type} ${found.identity}`, stays: found.stays && found.type !== 'compose' };
}

function missingCompose(resource: Declared): NoEngine | null {
  if (pathOfCompose() === null)
    return {
      kind: 'programs',
      message: 'docker-compose is not installed on this machine; declare its package before this resource',
    };
  if (lacksService(engineOf(resource)))
    return {
      kind: 'units',
      message: 'podman.socket is not active, which Compose needs; declare it with `unit-systemd` before this resource',
    };
  return null;
}

/** Returns the containers of the project's services, in the order of their names. */
export async function containersOf(resource: Declared, machine: Machine): Promise<SeenContainer[]> {
  const engine = engineOf(resource);
  const ids = await labelledObjects(engine, 'container', { name: labels.project, value: resource.body.name }, machine);
  const found = (await inspectObjects(engine, 'container', ids, machine)).map(inspectedContainer);
  const images = [...new Set(found.map(({ image }) => image))];
  const ofImages = new Map(
    (await inspectObjects(engine, 'image', images, machine))
      .map(inspectedImage)
      .map(({ id, labels: inherited }) => [id, inherited]),
  );
  return found
    .filter((one) => isOfCompose(one.labels, ofImages.get(one.image) ?? {}))
    .filter((one) => one.labels[labels.isOneOff]?.toLowerCase() !== 'true')
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(seenContainer);
}

/**
 * Reports whether Compose created a container. An image that `docker commit` creates from a container of Compose has the
 * labels of that container, and so does every container of the image.
 */
export const isOfCompose = (
  found: Readonly<Record<string, string>>,
  inherited: Readonly<Record<string, string>>,
): boolean =>
  Object.entries(found).some(([name, value]) => name.startsWith('com.docker.compose.') && inherited[name] !== value);

export function seenContainer({ labels: found, ...container }: InspectedContainer): SeenContainer {
  const { id, status, startedAt, exitCode, health, image } = container;
  return {
    ...{ id, status, startedAt, exitCode, health, image },
    service: shortened(found[labels.service] ?? '', 100),
    hash: shortened(found[labels.hash] ?? '', 100),
    file: filesOf(found[labels.files] ?? '', found[labels.directory] ?? ''),
  };
}

const filesOf = (files: string, directory: string): string =>
  files === ''
    ? ''
    : shortened(
        files
          .split(',')
          .map((file) => (directory.startsWith('/') ? resolve(directory, file) : file))
          .join(','),
        maximumComposePath,
      );

/** Shortens a text that is too long to be a declared one, so that it stays different from every declared one. */
const shortened = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text);

/**
 * Returns the declared Compose file. A drift check does not fetch it: it reads the file on the machine if that has the
 * declared content, and returns null otherwise.
 */
async function declaredText(
  resource: Declared,
  file: SeenFile,
  purpose: Purpose,
  machine: Machine,
): Promise<string | null> {
  const { source } = resource;
  const { path, content } = resource.body;
  if (content != null) return content;
  if (source === undefined) throw new HostFailure(`the orchestrator sent no content for ${path}; update it`);
  const { found } = file;
  const declared = { bytes: null, size: source.size, source };
  const isSame = found.type === 'file' && found.content !== null && sameContent(found.content, declared);
  const text = isSame
    ? textOf(file)
    : purpose === 'drift'
      ? null
      : (await machine.useContent(source, ({ read }) => read())).toString('utf8');
  if (text !== null) checkComposeFile(resource, text);
  return text;
}

/** Returns the ids of the images by their references. */
async function imagesOf(
  resource: Declared,
  wanted: readonly Pick<WantedService, 'image'>[],
  machine: Machine,
): Promise<Record<string, string>> {
  const references = [...new Set(wanted.map(({ image }) => image))];
  const found = (await inspectObjects(engineOf(resource), 'image', references, machine)).map(inspectedImage);
  const byName = new Map(found.flatMap(({ id, names }) => names.map((name): [string, string] => [name, id])));
  return Object.fromEntries(
    references.flatMap((reference) => {
      const id = imageSpellings(reference).flatMap((name) => byName.get(name) ?? [])[0];
      return id === undefined ? [] : [[reference, id]];
    }),
  );
}

/**
 * Returns the services of a project that the agent did not start, if the file on the machine alone describes all of
 * their containers, so that removal can start them again.
 */
async function formerServices(
  resource: Declared,
  { containers, file: { found } }: SeenProject,
  machine: Machine,
): Promise<Former[] | null> {
  const isSafe = found.type === 'file' && found.uid === asCreated(0).uid && (found.mode & 0o022) === 0;
  if (!isSafe) return null;
  if (containers.some(({ file }) => file !== resource.body.path)) return null;
  let described: WantedService[];
  try {
    const project = { ...projectOf(resource, null), profiles: [], variables: {} };
    described = await runTrusted(resource, null, machine, () =>
      wantedServices(project, { warn: machine.warn }, machine),
    );
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return null;
  }
  if (containers.some((one) => described.every(({ name, hash }) => name !== one.service || hash !== one.hash)))
    return null;
  return described.flatMap(({ name, image, hash }) => {
    const members = containers.filter(({ service }) => service === name);
    return members.length === 0
      ? []
      : [{ service: name, image, hash, count: members.length, running: members.some(isUp) }];
  });
}

/** Reports whether the container runs, or the engine restarts it. */
export const isUp = ({ status }: Pick<SeenContainer, 'status'>): boolean =>
  status === 'running' || status === 'restarting';
