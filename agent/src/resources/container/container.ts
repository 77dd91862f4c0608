import { defineProvider } from '../provider/define-provider.ts';
import { applyContainer, removeContainer } from './change.ts';
import { checkDefinition, type Declared, isAbsent, namedVolumes } from './definition.ts';
import { type ContainerBefore, diffContainer, diffContainerRemoval } from './diff.ts';
import { isUp, look, type SeenContainers } from './seen.ts';

/**
 * A container of Podman or Docker. A label contains its definition, and the engine reports the properties that can
 * change later. Values of environment variables are compared with those of the container, and never appear in a label,
 * argument, or record.
 */
export const container = defineProvider<'container', SeenContainers, ContainerBefore>({
  type: 'container',
  fields: {
    name: 'text',
    image: 'text?',
    pull: 'text?',
    command: 'list?',
    environment: 'map?',
    ports: 'list?',
    volumes: 'list?',
    networks: 'list?',
    user: 'text?',
    restart: 'text?',
    labels: 'map?',
    health_command: 'text?',
    health_interval: 'text?',
    health_timeout: 'text?',
    health_retries: 'integer?',
    health_start_period: 'text?',
    memory: 'text?',
    cpus: 'text?',
    read_only: 'boolean?',
    cap_add: 'list?',
    cap_drop: 'list?',
    state: 'text?',
    engine: 'text?',
    registry_user: 'text?',
    registry_password: 'text?',
    remove_image: 'boolean?',
    remove_volumes: 'boolean?',
    force: 'boolean?',
    ensure: 'text?',
  },
  check: checkDefinition,

  observe: (resource, { purpose }, machine) => look(resource, machine, purpose),
  diff: diffContainer,

  async remember(resource, seen, _difference, before) {
    return withMade(resource, seen, withDisplaced(seen, before ?? { was: formerOf(seen), images: [], volumes: [] }));
  },
  rememberForTrial: (_resource, seen) => ({
    was: seen.current?.isOurs === true ? 'ours' : formerOf(seen),
    images: [],
    volumes: [],
  }),

  apply: applyContainer,

  observeForRemoval: (resource, _before, machine) => look(resource, machine, 'removal'),
  diffRemoval: diffContainerRemoval,
  remove: (resource, before, seen, _difference, machine) => removeContainer(resource, before, seen, machine),

  wasApplied(resource, brief, seenNow, { action }) {
    if (action === 'remove' && !isAbsent(resource)) return true;
    if (diffContainer(resource, seenNow, { purpose: 'apply', restartBy: [] }).action !== 'none') return false;
    const then = (brief as unknown as SeenContainers).current;
    return action !== 'restart' || seenNow.current?.startedAt !== then?.startedAt;
  },
});

/** Returns the container that a removal restores. */
function formerOf({ current, kept }: SeenContainers): Exclude<ContainerBefore['was'], 'ours'> {
  if (kept !== null) return { id: kept.id, running: false, restart: kept.restart };
  if (current === null || current.isOurs) return 'absent';
  return { id: current.id, running: isUp(current), restart: current.restart };
}

/** Adds a container that the agent did not create and that is about to be displaced. */
const withDisplaced = (seen: SeenContainers, before: ContainerBefore): ContainerBefore => {
  const { current, kept } = seen;
  if (current === null || current.isOurs || kept !== null || before.was === 'ours') return before;
  const isKnown = before.was !== 'absent' && before.was.id === current.id;
  return isKnown ? before : { ...before, was: formerOf(seen) };
};

/** Adds the images and volumes that do not exist yet. */
function withMade(resource: Declared, { image, volumes }: SeenContainers, before: ContainerBefore): ContainerBefore {
  if (isAbsent(resource)) return before;
  const { body } = resource;
  const images = image === null && body.image != null ? [body.image] : [];
  const missing = body.remove_volumes === true ? namedVolumes(body).filter((name) => !volumes.includes(name)) : [];
  return {
    was: before.was,
    images: [...new Set([...before.images, ...images])],
    volumes: [...new Set([...before.volumes, ...missing])],
  };
}
