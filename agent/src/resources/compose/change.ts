import { isFirstVersion, runCompose, type WantedService } from '../../host/containers/compose-program.ts';
import { type EngineRun, labelledObjects, runEngine } from '../../host/containers/engine.ts';
import { HostFailure } from '../../host/failure.ts';
import { pullImage } from '../container/registry.ts';
import { engineChanged } from '../container/seen.ts';
import { applyFile } from '../file-unix/apply.ts';
import { diffFile } from '../file-unix/diff.ts';
import { removeOrRestoreFile } from '../file-unix/removal.ts';
import { declaredContent, hashOf } from '../file-unix/seen.ts';
import type { Database, Difference, Machine, Outcome } from '../provider/provider.ts';
import { type ComposeBefore, type Former, withFormerPath } from './before.ts';
import { type Declared, engineOf, fileOf, hiddenIn, imageOf, isAbsent, labels, projectOf } from './declared.ts';
import { diffFormerFile, formerChanges, missingImages, readiness, runsCompose, toRemove, undeclared } from './diff.ts';
import { beforeUp, isOwnFile, knownOf, type Mark, ownObjects, removeMark, withOwn, writeMark } from './mark.ts';
import { containersOf, declaredServices, isUp, type SeenContainer, type SeenProject } from './seen.ts';
import { runTrusted } from './trust.ts';

/** Milliseconds between two looks at services that are not ready yet. */
const pollMs = 500;
const defaultWait = 60;

const firstVersion: Database<boolean> = {
  name: 'first version of Compose',
  read: (machine) => isFirstVersion({ warn: machine.warn }, machine),
};

/** Changes the objects of one project. */
class Change {
  readonly #resource: Declared;
  readonly #machine: Machine;
  /** The declared Compose file; null if it is not known. */
  readonly #text: string | null;

  constructor(resource: Declared, text: string | null, machine: Machine) {
    this.#resource = resource;
    this.#text = text;
    this.#machine = machine;
  }

  get #options(): Pick<EngineRun, 'hidden' | 'warn' | 'timeLimit'> {
    const { warn, limits } = this.#machine;
    return { hidden: hiddenIn(this.#resource), warn, timeLimit: limits.scriptMs };
  }

  engine(doing: string, args: readonly string[], more: Partial<EngineRun> = {}): Promise<string> {
    return runEngine(engineOf(this.#resource), { ...this.#options, doing, args, ...more }, this.#machine);
  }

  /** Returns the containers that were created from the Compose file of the resource. */
  async containers(): Promise<SeenContainer[]> {
    const found = await containersOf(this.#resource, this.#machine);
    return found.filter(({ file }) => file === this.#resource.body.path);
  }

  async everything(): Promise<{ networks: string[]; volumes: string[] }> {
    return { networks: await this.objects('network'), volumes: await this.objects('volume') };
  }

  objects(type: 'network' | 'volume'): Promise<string[]> {
    const label = { name: labels.project, value: this.#resource.body.name };
    return labelledObjects(engineOf(this.#resource), type, label, this.#machine);
  }

  /** Returns the services of the Compose file on the machine. */
  services(): Promise<WantedService[]> {
    return declaredServices(this.#resource, null, this.#machine, this.#text);
  }

  /** Creates and starts containers with the Compose file on the machine. */
  async up(args: readonly string[], variables?: Readonly<Record<string, string>>): Promise<void> {
    const doing = `start the project ${this.#resource.body.name}`;
    const project = projectOf(this.#resource, null);
    const noPull = (await this.#machine.database(firstVersion)) ? [] : ['--pull=never'];
    await runTrusted(this.#resource, variables === undefined ? this.#text : null, this.#machine, () =>
      runCompose(
        variables === undefined ? project : { ...project, profiles: [], variables },
        { ...this.#options, doing, args: ['up', '--no-build', ...noPull, ...args] },
        this.#machine,
      ),
    );
  }

  async stopAndRemove(containers: readonly SeenContainer[], withVolumes: boolean): Promise<void> {
    const doing = `remove containers of the project ${this.#resource.body.name}`;
    await this.unpause(containers);
    const active = containers.filter(isUp).map(({ id }) => id);
    if (active.length > 0) await this.engine(doing, ['stop', ...active]);
    // The engine may fail at a container that no longer exists, and would then keep the others. Podman removes a container
    // only after those that share its network.
    for (let rest = containers.map(({ id }) => id); rest.length > 0; ) {
      const stays: string[] = [];
      for (const id of rest)
        if (!(await this.#removed(doing, ['rm', '--force', ...(withVolumes ? ['--volumes'] : []), id]))) stays.push(id);
      if (stays.length === rest.length)
        throw new HostFailure(
          `cannot ${doing}: other containers need ${stays.map((id) => id.slice(0, 12)).join(', ')}; remove those first`,
        );
      rest = stays;
    }
  }

  async unpause(containers: readonly SeenContainer[]): Promise<void> {
    for (const { id, status } of containers)
      if (status === 'paused')
        await this.engine(`continue a container of ${this.#resource.body.name}`, ['unpause', id]);
  }

  /** @returns whether the object no longer exists; false if it is still in use */
  async #removed(doing: string, args: readonly string[]): Promise<boolean> {
    try {
      await this.engine(doing, args);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      if (/in use|being used|used by|active endpoints|associated containers|dependent containers/i.test(error.message))
        return false;
      if (!/no such|not known|not found/i.test(error.message)) throw error;
    }
    return true;
  }

  /** Returns the names of the objects that are still in use. */
  async removeEach(type: 'network' | 'volume' | 'image', names: readonly string[]): Promise<string[]> {
    const stays: string[] = [];
    for (const name of names)
      if (!(await this.#removed(`remove the ${type} ${name}`, [type, 'rm', '--', name]))) stays.push(name);
    return stays;
  }

  /**
   * Waits until all services run, and are healthy if they have a health check, twice in a row without a restart.
   * @throws HostFailure if they are not ready in time
   */
  async awaitServices(wanted: readonly WantedService[]): Promise<void> {
    const { name, wait } = this.#resource.body;
    const limit = this.#machine.clock.monotonic() + (wait ?? defaultWait) * 1000;
    for (let last = ''; ; ) {
      const containers = await this.containers();
      const { failed, waiting } = readiness(this.#resource, wanted, containers);
      const isReady = failed.length === 0 && waiting.length === 0;
      const state = JSON.stringify([failed, containers.map(({ id, startedAt }) => [id, startedAt])]);
      if (state === last && isReady) return;
      const isLate = this.#machine.clock.monotonic() >= limit;
      if ((state === last && failed.length > 0) || isLate)
        throw new HostFailure(
          `the project ${name} is not ready${isLate ? ` after ${wait ?? defaultWait} s` : ''}: ${[...failed, ...waiting].join(', ') || 'its containers are restarted repeatedly'}`,
        );
      last = state;
      await new Promise<void>((resolve) => void this.#machine.clock.after(pollMs, resolve));
    }
  }
}

export async function applyProject(
  resource: Declared,
  seen: SeenProject,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const text = resource.body.content ?? seen.file.source?.toString('utf8') ?? null;
  const change = new Change(resource, text, machine);
  try {
    if (isAbsent(resource)) await takeAway(change, resource, seen, machine);
    else {
      if (!runsCompose(difference)) await writeFile(resource, seen, machine);
      else await start(change, resource, seen, machine);
      if (difference.action === 'restart') await restartServices(change, resource, seen);
    }
    return {};
  } finally {
    engineChanged(engineOf(resource), machine);
  }
}

const markOf = (resource: Declared, { mark }: SeenProject): Mark =>
  mark ?? { path: resource.body.path, sha256: '', started: false, foreign: null, own: null, services: {} };

/** Writes the Compose file if it differs. @returns the mark, which then says that the file is the agent's */
async function writeFile(resource: Declared, seen: SeenProject, machine: Machine): Promise<Mark> {
  const file = fileOf(resource);
  const difference = diffFile(file, seen.file, { purpose: 'apply' });
  const former = markOf(resource, seen);
  const content = declaredContent(resource);
  const mark = isOwnFile(former, former.path, seen.file.found)
    ? former
    : { ...former, sha256: content === null ? '' : hashOf(content) };
  if (difference.action === 'none') return mark;
  writeMark(resource, mark, machine);
  await applyFile(file, seen.file, difference, machine);
  const written = { ...mark, sha256: null };
  writeMark(resource, written, machine);
  return written;
}

/** Creates and starts the declared services. */
async function start(change: Change, resource: Declared, seen: SeenProject, machine: Machine): Promise<void> {
  const isPulled = await pullMissing(resource, seen.wanted ?? [], seen, machine);
  const mark = await writeFile(resource, seen, machine);
  const wanted = seen.wanted ?? [];
  const names = wanted.map(({ name }) => name);
  const containers = await change.containers();
  await change.stopAndRemove(undeclared({ containers }, names), false);
  await change.unpause(containers);
  // Written only now, so that a project that others start does not count as the agent's if an earlier step fails.
  const started = beforeUp(mark, await change.everything());
  writeMark(resource, started, machine);
  const ended = async () => withOwn(started, await change.everything());
  try {
    await change.up(['--detach']);
  } catch (error) {
    // If the engine does not respond either, the error of Compose says more.
    const made = error instanceof HostFailure ? await ended().catch(() => null) : null;
    if (made !== null) writeMark(resource, made, machine);
    throw error;
  }
  // The first version of Compose hashes the ids of the images too.
  const services = isPulled ? await change.services() : wanted;
  writeMark(resource, { ...(await ended()), services: knownOf(services, await change.containers()) }, machine);
  await change.awaitServices(services);
}

/** Removes the containers, the networks that the agent created, and the Compose file. */
async function takeAway(change: Change, resource: Declared, seen: SeenProject, machine: Machine): Promise<void> {
  const { found } = seen.file;
  const mark = markOf(resource, seen);
  let { own } = mark;
  // Without its program, an engine has no containers.
  if (seen.missing === null) {
    await change.stopAndRemove(await change.containers(), false);
    await change.removeEach('network', ownObjects(mark, 'networks', await change.objects('network')));
    own = withOwn(mark, await change.everything()).own;
  }
  const file = fileOf(resource);
  const difference = diffFile(file, seen.file, { purpose: 'apply' });
  const sha256 = (found.type === 'file' ? found.content?.sha256 : null) ?? '';
  writeMark(resource, { ...mark, sha256, started: false, own, services: {} }, machine);
  if (difference.action !== 'none') await applyFile(file, seen.file, difference, machine);
}

/** @returns whether an image was pulled */
async function pullMissing(
  resource: Declared,
  services: readonly { image: string }[],
  seen: Pick<SeenProject, 'images'>,
  machine: Machine,
): Promise<boolean> {
  if (resource.body.pull === 'never') return false;
  const missing = missingImages(services, seen);
  for (const image of missing) await pullImage(imageOf(resource, image), machine);
  return missing.length > 0;
}

/** Restarts the containers that the agent has not just started. */
async function restartServices(change: Change, resource: Declared, seen: SeenProject): Promise<void> {
  const running = (await change.containers()).filter(isUp);
  const same = running.filter(({ id, startedAt }) =>
    seen.containers.some((one) => one.id === id && one.startedAt === startedAt),
  );
  if (same.length > 0)
    await change.engine(`restart the project ${resource.body.name}`, ['restart', ...same.map(({ id }) => id)], {
      staysUp: true,
    });
  await change.awaitServices(seen.wanted ?? []);
}

/** Removes the project, or starts the earlier services again. */
export async function removeProject(
  declared: Declared,
  before: ComposeBefore,
  seen: SeenProject,
  machine: Machine,
): Promise<Outcome> {
  const resource = withFormerPath(declared, before, seen.mark);
  const change = new Change(resource, null, machine);
  const restoreFile = async () => {
    if (before.file === null) return;
    const file = fileOf(resource);
    const former = before.file.before;
    const difference = diffFormerFile(resource, before, seen, machine.copies);
    if (difference.action !== 'none') await removeOrRestoreFile(file, former, seen.file, difference, machine);
  };
  try {
    if (Array.isArray(before.was) && formerChanges(before.was, seen).length > 0)
      await pullMissing(resource, before.was, seen, machine);
    const stays = before.was === 'absent' ? await removeObjects(change, resource, before, seen) : [];
    await restoreFile();
    if (Array.isArray(before.was)) await restoreServices(change, before.was);
    if (before.was !== 'absent' && resource.body.remove_images === true)
      stays.push(...(await change.removeEach('image', before.images)));
    // Removed last, because a removal that is repeated needs it.
    removeMark(resource, machine);
    return stays.length === 0 ? {} : { message: `still in use, so it is kept: ${stays.join(', ')}` };
  } finally {
    engineChanged(engineOf(resource), machine);
  }
}

/** Removes what the agent created. @returns the names of the objects that are still in use */
async function removeObjects(
  change: Change,
  resource: Declared,
  before: ComposeBefore,
  seen: SeenProject,
): Promise<string[]> {
  const { remove_volumes, remove_images } = resource.body;
  const { mark } = seen;
  if (seen.missing !== null) return [];
  await change.stopAndRemove(
    toRemove(resource, { mark, containers: await change.containers() }),
    remove_volumes === true,
  );
  const volumes = remove_volumes === true ? ownObjects(mark, 'volumes', await change.objects('volume')) : [];
  return [
    ...(await change.removeEach('network', ownObjects(mark, 'networks', await change.objects('network')))),
    ...(await change.removeEach('volume', volumes)),
    ...(await change.removeEach('image', remove_images === true ? before.images : [])),
  ];
}

/** Creates the containers of the earlier services again, and starts those that ran. */
async function restoreServices(change: Change, former: readonly Former[]): Promise<void> {
  const containers = await change.containers();
  if (formerChanges(former, { containers }).length === 0) return;
  const names = former.map(({ service }) => service);
  await change.stopAndRemove(undeclared({ containers }, names), false);
  await change.unpause(containers);
  const scales = (some: readonly Former[]) => some.map(({ service, count }) => `--scale=${service}=${count}`);
  const servicesOf = (some: readonly Former[]) => [...scales(some), ...some.map(({ service }) => service)];
  const running = former.filter((one) => one.running);
  const stopped = former.filter((one) => !one.running);
  if (running.length > 0) await change.up(['--detach', '--no-deps', ...servicesOf(running)], {});
  if (stopped.length > 0) {
    await change.up(['--no-start', '--no-deps', ...servicesOf(stopped)], {});
    const wrong = (await change.containers()).filter(
      (one) => isUp(one) && stopped.some((each) => each.service === one.service),
    );
    if (wrong.length > 0) await change.engine('stop the earlier services', ['stop', ...wrong.map(({ id }) => id)]);
  }
}
