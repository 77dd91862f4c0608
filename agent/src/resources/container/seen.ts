import {
  type Engine,
  EngineUnreachable,
  inspectObjects,
  missingEngine,
  type NoEngine,
} from '../../host/containers/engine.ts';
import {
  containersByName,
  type InspectedContainer,
  inspectedImage,
  inspectedName,
} from '../../host/containers/inspected.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Circumstances, Database, Machine } from '../provider/provider.ts';
import {
  type Declared,
  type Definition,
  definitionLabel,
  engineOf,
  isAbsent,
  namedNetworks,
  namedVolumes,
  namesOf,
  ownerLabel,
  parseDefinition,
} from './definition.ts';
import { isSkopeoMissing, registryImage } from './registry.ts';

/** A container, without the values of its environment. */
export interface SeenContainer {
  id: string;
  status: string;
  startedAt: string;
  /** Whether an agent created it for a resource of this name. */
  isOurs: boolean;
  definition: Definition | null;
  /** ID of its image. */
  image: string;
  imageName: string;
  restart: string;
  memory: number;
  nanoCpus: number;
  networks: string[];
  /** Whether a declared environment variable has another value. */
  differsInEnvironment: boolean;
}

export interface SeenContainers {
  missing: NoEngine | null;
  current: SeenContainer | null;
  fresh: SeenContainer | null;
  old: SeenContainer | null;
  kept: SeenContainer | null;
  /** Names that the agent needs but that are used by containers it did not create. */
  taken: string[];
  /** ID of the declared image on this machine. */
  image: string | null;
  /** ID of the declared image in the registry; null if the registry was not queried. */
  remoteImage: string | null;
  /** Whether the program that queries the registry is missing. */
  isSkopeoMissing: boolean;
  missingNetworks: string[];
  /** The declared volumes that exist; empty unless removal would remove them. */
  volumes: string[];
}

/** The objects of an engine that resources refer to. */
interface Inventory {
  containers: ReadonlyMap<string, InspectedContainer | HostFailure>;
  /** IDs by reference. */
  images: ReadonlyMap<string, string>;
  networks: ReadonlySet<string>;
  volumes: ReadonlySet<string>;
}

const inventoryOf = (engine: Engine): Database<Inventory> => ({
  name: `containers of ${engine}`,
  async read(machine) {
    const resources = (machine.resourcesOf('container') as readonly Declared[]).filter(
      (resource) => engineOf(resource) === engine,
    );
    const present = resources.filter((resource) => !isAbsent(resource));
    const inspect = (type: Parameters<typeof inspectObjects>[1], names: readonly string[]) =>
      inspectObjects(engine, type, [...new Set(names)], machine);
    const containers = await inspect(
      'container',
      resources.flatMap(({ body }) => Object.values(namesOf(body.name))),
    );
    const images = (
      await inspect(
        'image',
        present.flatMap(({ body: { image } }) => image ?? []),
      )
    ).map(inspectedImage);
    const names = async (type: 'network' | 'volume', of: (body: Declared['body']) => string[]) => {
      const found = await inspect(
        type,
        present.flatMap(({ body }) => of(body)),
      );
      return new Set(found.map(inspectedName).filter((name) => name !== null));
    };
    return {
      containers: containersByName(containers),
      images: new Map(images.flatMap(({ id, names: references }) => references.map((name) => [name, id]))),
      networks: await names('network', namedNetworks),
      volumes: await names('volume', (body) => (body.remove_volumes === true ? namedVolumes(body) : [])),
    };
  },
});

const inventories = { podman: inventoryOf('podman'), docker: inventoryOf('docker') };

/** Discards the cached objects of an engine. */
export const engineChanged = (engine: Engine, machine: Machine): void => machine.stale(inventories[engine]);

/** Returns the names under which an engine may list an image. Docker omits its own registry. */
export const imageSpellings = (reference: string): string[] => [
  reference,
  reference.replace(/^docker\.io\//, ''),
  reference.replace(/^docker\.io\/library\//, ''),
];

const nothingSeen = {
  ...{ current: null, fresh: null, old: null, kept: null, image: null, remoteImage: null },
  ...{ isSkopeoMissing: false, missingNetworks: [], volumes: [], taken: [] },
};

export async function look(
  resource: Declared,
  machine: Machine,
  purpose: Circumstances['purpose'] | 'removal',
): Promise<SeenContainers> {
  const { body } = resource;
  const engine = engineOf(resource);
  const missing = missingEngine(engine);
  if (missing !== null) return { ...nothingSeen, missing };
  let inventory: Inventory;
  try {
    inventory = await machine.database(inventories[engine]);
  } catch (error) {
    // The daemon may be started by an earlier resource.
    if (!(error instanceof EngineUnreachable) || purpose === 'drift' || purpose === 'removal') throw error;
    return { ...nothingSeen, missing: { kind: 'units', message: error.message } };
  }
  const names = namesOf(body.name);
  const seen = (name: string) => {
    const found = inventory.containers.get(name);
    if (found instanceof HostFailure) throw found;
    return seenContainer(resource, found);
  };
  const own = (name: string) => {
    const found = seen(name);
    return found?.isOurs === true ? found : null;
  };
  const image = imageSpellings(body.image ?? '').flatMap((name) => inventory.images.get(name) ?? [])[0] ?? null;
  const asks = body.pull === 'always' && !isAbsent(resource) && (purpose === 'plan' || purpose === 'apply');
  return {
    missing: null,
    taken: [names.fresh, names.old].filter((name) => seen(name)?.isOurs === false),
    ...{ current: seen(names.current), fresh: own(names.fresh), old: own(names.old), kept: seen(names.kept) },
    image,
    remoteImage: asks && !isSkopeoMissing() ? await registryImage(resource, machine) : null,
    isSkopeoMissing: asks && isSkopeoMissing(),
    missingNetworks: isAbsent(resource) ? [] : namedNetworks(body).filter((name) => !inventory.networks.has(name)),
    volumes: namedVolumes(body).filter((name) => inventory.volumes.has(name)),
  };
}

export function seenContainer({ body }: Declared, found: InspectedContainer | undefined): SeenContainer | null {
  if (found === undefined) return null;
  const { id, status, startedAt, image, imageName, restart, memory, nanoCpus, networks, labels, environment } = found;
  return {
    ...{ id, status, startedAt, image, imageName, restart, memory, nanoCpus, networks },
    isOurs: labels[ownerLabel] === body.name,
    definition: parseDefinition(labels[definitionLabel]),
    differsInEnvironment: Object.entries(body.environment ?? {}).some(
      ([name, value]) => environment.get(name) !== value,
    ),
  };
}

export const isRunning = ({ status }: Pick<SeenContainer, 'status'>): boolean => status === 'running';

/** Reports whether the container runs, or the engine restarts it. */
export const isUp = (container: Pick<SeenContainer, 'status'>): boolean =>
  isRunning(container) || container.status === 'restarting';

/** Reports whether stopping the container changes anything. */
export const isActive = (container: Pick<SeenContainer, 'status'>): boolean =>
  isUp(container) || container.status === 'paused' || container.status === 'stopping';
