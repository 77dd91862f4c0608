import { type EngineRun, inspectObjects, runEngine } from '../../host/containers/engine.ts';
import { type InspectedContainer, inspectedContainer, inspectedVolume } from '../../host/containers/inspected.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Difference, Machine, Outcome } from '../provider/provider.ts';
import {
  createArguments,
  type Declared,
  engineOf,
  environmentFile,
  isAbsent,
  namedVolumes,
  namesOf,
  ownerLabel,
} from './definition.ts';
import { type ContainerBefore, earlierOf, replaces } from './diff.ts';
import { hiddenIn, pullImage } from './registry.ts';
import { engineChanged, isActive, isRunning, isUp, type SeenContainer, type SeenContainers } from './seen.ts';

/** Milliseconds for which a container must keep running after it is started. */
const settleMs = 500;

/**
 * Returns the ID of storage that has no container, from a list of IDs, commands, and names. An entry with any other
 * command is a real container.
 */
export function idOfRemains(listing: string, name: string): string | null {
  const lines = listing.split('\n').map((line) => line.trim().split(' '));
  const [id = ''] =
    lines.find(([, command, one, ...rest]) => command === 'storage' && one === name && rest.length === 0) ?? [];
  return /^[0-9a-f]{64}$/.test(id) ? id : null;
}

/** Changes the containers of one resource. */
class Change {
  readonly #resource: Declared;
  readonly #machine: Machine;
  readonly names: ReturnType<typeof namesOf>;

  constructor(resource: Declared, machine: Machine) {
    this.#resource = resource;
    this.#machine = machine;
    this.names = namesOf(resource.body.name);
  }

  run(doing: string, args: readonly string[], more: Partial<EngineRun> = {}): Promise<string> {
    const { warn, limits } = this.#machine;
    const options = { doing, args, timeLimit: limits.scriptMs, hidden: hiddenIn(this.#resource), warn, ...more };
    return runEngine(engineOf(this.#resource), options, this.#machine);
  }

  async inspect(name: string): Promise<InspectedContainer | null> {
    const found = await inspectObjects(engineOf(this.#resource), 'container', [name], this.#machine);
    return found.map(inspectedContainer).find((one) => one.name === name || one.id === name) ?? null;
  }

  async remove(container: SeenContainer | null, name: string): Promise<void> {
    if (container !== null) await this.run(`remove the container ${name}`, ['rm', '--force', container.id]);
  }

  /** Creates the missing volumes. Labels them, because another program may create one in the meantime. */
  async createVolumes(existing: readonly string[]): Promise<void> {
    const { body } = this.#resource;
    if (body.remove_volumes !== true) return;
    for (const name of namedVolumes(body).filter((one) => !existing.includes(one)))
      try {
        await this.run(`create the volume ${name}`, ['volume', 'create', `--label=${ownerLabel}=${body.name}`, name]);
      } catch (error) {
        if (!(error instanceof HostFailure) || !error.message.includes('already exists')) throw error;
      }
  }

  /** Returns the volumes that the agent created for this resource. */
  async ownVolumes(names: readonly string[]): Promise<string[]> {
    const found = await inspectObjects(engineOf(this.#resource), 'volume', names, this.#machine);
    const own = found.map(inspectedVolume).filter(({ labels }) => labels[ownerLabel] === this.names.current);
    return own.map(({ name }) => name);
  }

  /** Removes the container that a failed creation left behind, but only if the agent created it. */
  async removeUnfinished(): Promise<void> {
    const { fresh } = this.names;
    const found = await this.inspect(fresh);
    if (found?.labels[ownerLabel] === this.names.current)
      await this.run(`remove the container ${fresh}`, ['rm', '--force', found.id]);
  }

  async stop({ id, status }: SeenContainer): Promise<void> {
    const doing = `stop the container ${this.names.current}`;
    if (status === 'paused') await this.run(doing, ['unpause', id]);
    if (isActive({ status })) await this.run(doing, ['stop', id]);
  }

  rename(container: { id: string }, to: string): Promise<string> {
    return this.run(`rename a container to ${to}`, ['rename', container.id, to]);
  }

  /** Creates the next container, under a temporary name. */
  async create(): Promise<InspectedContainer> {
    const { body } = this.#resource;
    const { fresh } = this.names;
    const doing = `create the container ${this.names.current}`;
    const create = () => this.run(doing, createArguments(body, fresh), { secret: environmentFile(body) });
    try {
      await create();
    } catch (error) {
      if (!(await this.#removesRemains(error, fresh))) throw error;
      await create();
    }
    const [, ...networks] = [...new Set(body.networks)].sort();
    for (const network of networks) await this.run(doing, ['network', 'connect', network, fresh]);
    const created = await this.inspect(fresh);
    if (created === null) throw new HostFailure(`cannot ${doing}: the engine reported success, but it does not exist`);
    const wrong = Object.entries(body.environment ?? {}).find(
      ([name, value]) => created.environment.get(name) !== value,
    );
    if (wrong !== undefined)
      throw new HostFailure(`cannot ${doing}: the engine changed the value of the environment variable ${wrong[0]}`);
    return created;
  }

  /**
   * Removes a container's storage that Podman left behind when it was killed and that it does not list as a container.
   * @returns whether it was removed
   */
  async #removesRemains(error: unknown, name: string): Promise<boolean> {
    if (!(error instanceof HostFailure) || !error.message.includes('already in use')) return false;
    if (engineOf(this.#resource) !== 'podman') return false;
    const listing = ['ps', '--all', '--external', '--no-trunc', '--format', '{{.ID}} {{.Command}} {{.Names}}'];
    const id = idOfRemains(await this.run('list the containers', listing), name);
    if (id === null) return false;
    await this.run(`remove the container ${name}`, ['rm', '--force', id]);
    return true;
  }

  /** @throws HostFailure if the container does not start, or exits immediately, even if the engine restarts it */
  async start({ id }: { id: string }, action: 'start' | 'restart' = 'start'): Promise<void> {
    const doing = `${action} the container ${this.names.current}`;
    await this.run(doing, [action, id], { staysUp: true });
    const first = await this.inspect(id);
    await new Promise<void>((resolve) => void this.#machine.clock.after(settleMs, resolve));
    const now = await this.inspect(id);
    const isSame = first?.startedAt === now?.startedAt && first?.restarts === now?.restarts;
    if (now !== null && isRunning(now) && isSame) return;
    const { name = this.names.current, exitCode = 0 } = now ?? {};
    const fault = now !== null && isUp(now) ? 'and is restarted repeatedly' : `with ${exitCode}`;
    throw new HostFailure(
      `cannot ${doing}: it exited immediately ${fault}; see \`${engineOf(this.#resource)} logs ${name}\``,
    );
  }

  /** Stops a container that the agent did not create, and keeps it under another name. */
  async keep(container: SeenContainer): Promise<void> {
    await this.stop(container);
    if (engineOf(this.#resource) === 'docker' && container.restart !== 'no')
      await this.run(`keep the container ${this.names.current} stopped`, ['update', '--restart=no', container.id]);
    await this.rename(container, this.names.kept);
  }

  async restore(id: string, { running, restart }: { running: boolean; restart: string }): Promise<void> {
    const { current } = this.names;
    if (engineOf(this.#resource) === 'docker' && restart !== 'no')
      await this.run(`restore the container ${current}`, ['update', `--restart=${restart}`, id]);
    const now = await this.inspect(id);
    if (now?.name !== current) await this.rename({ id }, current);
    if (running && (now === null || !isRunning(now)))
      await this.run(`start the container ${current}`, ['start', id], { staysUp: true });
  }
}

export async function applyContainer(
  resource: Declared,
  seen: SeenContainers,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const change = new Change(resource, machine);
  try {
    if (isAbsent(resource)) await takeAway(change, seen);
    else if (replaces(difference)) await replace(change, resource, seen, machine);
    else await changeState(change, resource, seen, difference);
  } finally {
    engineChanged(engineOf(resource), machine);
  }
  return {};
}

async function takeAway(change: Change, { current, fresh, old }: SeenContainers): Promise<void> {
  const { names } = change;
  await change.remove(fresh, names.fresh);
  await change.remove(old, names.old);
  if (current === null) return;
  if (current.isOurs) await change.remove(current, names.current);
  else await change.keep(current);
}

async function changeState(
  change: Change,
  { body }: Declared,
  { current, fresh, old }: SeenContainers,
  { action }: Difference,
): Promise<void> {
  if (current === null) return;
  if (body.state === 'stopped') await change.stop(current);
  else if (current.status === 'paused')
    await change.run(`continue the container ${change.names.current}`, ['unpause', current.id]);
  else if (action === 'restart' || current.status === 'restarting') await change.start(current, 'restart');
  else if (!isRunning(current)) await startNext(change, current, old);
  await change.remove(fresh, change.names.fresh);
  await change.remove(old, change.names.old);
}

/**
 * Starts a container whose first start the agent may not have reached. If the start fails, restores the previous
 * container.
 */
async function startNext(change: Change, current: SeenContainer, old: SeenContainer | null): Promise<void> {
  try {
    await change.start(current);
  } catch (error) {
    if (old === null) throw error;
    throw await undone(error, async () => {
      await change.remove(current, change.names.current);
      await giveBack(change, { container: old, isKept: false, wasRunning: true });
    });
  }
}

/**
 * Creates the next container before the current one stops. If the next one does not start, restores the current one. If
 * the agent is killed, containers with the temporary names remain, and the next observation finds them.
 */
async function replace(change: Change, resource: Declared, seen: SeenContainers, machine: Machine): Promise<void> {
  const { names } = change;
  const { image, remoteImage } = seen;
  const wantsUp = resource.body.state !== 'stopped';
  if (image === null ? resource.body.pull !== 'never' : remoteImage !== null && remoteImage !== image)
    await pullImage(resource, machine);
  await change.remove(seen.fresh, names.fresh);
  let fresh: { id: string };
  try {
    await change.createVolumes(seen.volumes);
    fresh = await change.create();
  } catch (error) {
    throw await undone(error, () => change.removeUnfinished());
  }
  const former = formerOf(seen, wantsUp);
  try {
    if (former !== null) await makeWay(change, former, seen);
    await change.rename(fresh, names.current);
    if (wantsUp) await change.start(fresh);
  } catch (error) {
    throw await undone(error, async () => {
      await change.run(`remove the container ${names.current}`, ['rm', '--force', fresh.id]);
      if (former !== null) await giveBack(change, former);
    });
  }
  if (former?.isKept === false) await change.remove(former.container, names.old);
}

/** Reverts a failed change. @returns the error, with the reason why the previous state could not be restored */
async function undone(error: unknown, undo: () => Promise<void>): Promise<unknown> {
  try {
    await undo();
    return error;
  } catch (other) {
    if (!(error instanceof HostFailure) || !(other instanceof HostFailure)) return error;
    return new HostFailure(`${error.message}; the former container could not be restored: ${other.message}`);
  }
}

/** A container that the next one replaces, and that is restored if the next one fails. */
interface Former {
  container: SeenContainer;
  isKept: boolean;
  wasRunning: boolean;
}

/**
 * Returns the container to restore if the next container fails: the current container, or the previous one if the agent
 * was killed before it had started the current container.
 */
function formerOf({ current, fresh, old }: SeenContainers, wantsUp: boolean): Former | null {
  if (old !== null && (current === null || (current.isOurs && !isRunning(current))))
    return { container: old, isKept: false, wasRunning: wantsUp };
  if (current === null) return null;
  // If the next container already exists, the agent may have stopped the current container.
  const wasRunning = isUp(current) || (current.isOurs && fresh !== null && wantsUp);
  return { container: current, isKept: !current.isOurs, wasRunning };
}

/** Frees the container name for the next container. */
async function makeWay(change: Change, former: Former, { current, old }: SeenContainers): Promise<void> {
  const { names } = change;
  if (former.container === old) return change.remove(current, names.current);
  await change.remove(old, names.old);
  if (former.isKept) return change.keep(former.container);
  await change.stop(former.container);
  await change.rename(former.container, names.old);
}

const giveBack = (change: Change, { container, isKept, wasRunning }: Former): Promise<void> =>
  change.restore(container.id, { running: wasRunning, restart: isKept ? container.restart : 'no' });

/** Removes the containers of the resource, and restores the earlier container. */
export async function removeContainer(
  resource: Declared,
  before: ContainerBefore,
  seen: SeenContainers,
  machine: Machine,
): Promise<Outcome> {
  const change = new Change(resource, machine);
  const { names } = change;
  const { current, fresh, old } = seen;
  const former = typeof before.was === 'object' ? before.was : null;
  const isBack = former !== null && current?.id === former.id;
  try {
    await change.remove(fresh, names.fresh);
    await change.remove(old, names.old);
    if (current?.isOurs === true) await change.remove(current, names.current);
    const id = isBack ? former.id : earlierOf(before, seen)?.id;
    if (former !== null && id !== undefined) await change.restore(id, former);
    const stays = [
      ...(resource.body.remove_volumes === true
        ? await removeEach(change, 'volume', await change.ownVolumes(before.volumes))
        : []),
      ...(resource.body.remove_image === true ? await removeEach(change, 'image', before.images) : []),
    ];
    return stays.length === 0 ? {} : { message: `still in use, so it is kept: ${stays.join(', ')}` };
  } finally {
    engineChanged(engineOf(resource), machine);
  }
}

/**
 * Removes volumes or images, except those that are still in use.
 * @returns the names of those in use
 */
async function removeEach(change: Change, type: 'volume' | 'image', names: readonly string[]): Promise<string[]> {
  const stays: string[] = [];
  for (const name of names)
    try {
      await change.run(`remove the ${type} ${name}`, [type, 'rm', name]);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      if (/in use|being used|used by/i.test(error.message)) stays.push(name);
      else if (!/no such|not known|not found/i.test(error.message)) throw error;
    }
  return stays;
}
