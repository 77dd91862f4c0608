import { isMapping } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { type Engine, secretPath } from '../../host/containers/engine.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Json } from '../provider/provider.ts';

export type Declared = ResolvedResource<'container'>;
type Body = Declared['body'];

/** Fields that are fixed when a container is created. */
export const definitionFields = [
  ...(['image', 'command', 'environment', 'ports', 'volumes', 'networks', 'user', 'restart', 'labels'] as const),
  ...(['health_command', 'health_interval', 'health_timeout', 'health_retries', 'health_start_period'] as const),
  ...(['memory', 'cpus', 'read_only', 'cap_add', 'cap_drop'] as const),
] as const;
export type DefinitionField = (typeof definitionFields)[number];

/** The declared fields, with only the names of the environment variables. */
export type Definition = { [F in DefinitionField]?: Json };

/**
 * Labels of containers that the agent creates. An image may also have these labels, so they include the container's
 * name.
 */
export const ownerLabel = 'muster.container';
export const definitionLabel = 'muster.definition';

/** Maximum length of one argument on Linux, minus the label name and the option. */
const maxDefinition = 120_000;

export const engineOf = ({ body }: Declared): Engine => body.engine ?? 'podman';

export const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';

/** Returns the names of the containers that the agent creates for one resource. */
export const namesOf = (name: string) => ({
  current: name,
  /** The next container, until it replaces the current one. */
  fresh: `${name}-muster-new`,
  /** The previous container, kept until the next one runs. */
  old: `${name}-muster-old`,
  /** A container that the agent did not create. Removal restores it. */
  kept: `${name}-muster-before`,
});

const sets: ReadonlySet<string> = new Set(['ports', 'volumes', 'networks', 'cap_add', 'cap_drop']);

const sorted = (values: readonly string[]): string[] => [...new Set(values)].sort();

/** Returns the definition as text, so that equal definitions result in equal texts. */
export function definitionOf(body: Body): Definition {
  const definition: Definition = {};
  for (const field of definitionFields) {
    const value = body[field];
    if (value == null) continue;
    if (field === 'environment') definition.environment = Object.keys(value).sort();
    else if (Array.isArray(value)) definition[field] = sets.has(field) ? sorted(value) : [...value];
    else if (typeof value === 'object')
      definition[field] = Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
    else definition[field] = value;
  }
  return definition;
}

/** Parses the label of a container, which anyone who creates containers can write; null if it is not a definition. */
export function parseDefinition(label: string | undefined): Definition | null {
  if (label === undefined || label.length > maxDefinition) return null;
  try {
    const value: unknown = JSON.parse(label);
    return isMapping(value) ? (value as unknown as Definition) : null;
  } catch {
    return null;
  }
}

/** Returns the fields in which two definitions differ, in their order. */
export const differingFields = (one: Definition, other: Definition): DefinitionField[] =>
  definitionFields.filter((field) => JSON.stringify(one[field]) !== JSON.stringify(other[field]));

const maxShown = 300;

/** Returns a field in a readable form; null if it is not declared. */
export function shownField(value: Json | undefined): string | null {
  if (value === undefined || value === null) return null;
  const text = Array.isArray(value)
    ? value.map((one) => String(one)).join(', ')
    : typeof value === 'object'
      ? Object.entries(value)
          .map(([name, one]) => `${name}=${String(one)}`)
          .join(', ')
      : String(value);
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}

/** @throws HostFailure if the definition does not fit into a label, or would be read as several lines */
export function checkDefinition({ body }: Declared): void {
  if (JSON.stringify(definitionOf(body)).length > maxDefinition)
    throw new HostFailure('the definition of the container is too long');
  for (const [name, value] of Object.entries(body.environment ?? {}))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || /[\n\r\0]/.test(value))
      throw new HostFailure(`the environment variable ${JSON.stringify(name)} cannot be passed to a container`);
  const shared = (body.networks ?? []).find((network) => network === 'host' || network === 'none');
  if (shared !== undefined && sorted(body.networks ?? []).length > 1)
    throw new HostFailure(`the network ${shared} cannot be combined with others`);
  if (body.pull === 'always' && body.engine === 'docker')
    throw new HostFailure('`pull: always` needs Podman: declare a tag or a digest that changes with the image');
}

/** Returns the content of the file with the environment. The values never appear in arguments. */
export const environmentFile = ({ environment }: Body): string =>
  Object.entries(environment ?? {})
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

/** Returns the declared networks that are objects of the engine, which `host` and `none` are not. */
export const namedNetworks = ({ networks }: Body): string[] =>
  sorted(networks ?? []).filter((network) => network !== 'host' && network !== 'none');

/** Returns the names of the declared volumes. */
export const namedVolumes = ({ volumes }: Body): string[] =>
  sorted((volumes ?? []).map((volume) => volume.split(':')[0] ?? '').filter((source) => !source.startsWith('/')));

const memoryUnits: Readonly<Record<string, number>> = { M: 1024 ** 2, G: 1024 ** 3 };

/** Returns the declared memory in bytes. */
export const bytesOf = (memory: string): number => Number(memory.slice(0, -1)) * (memoryUnits[memory.slice(-1)] ?? 0);

/** Returns the declared CPU time in billionths of a CPU. */
export const nanoCpusOf = (cpus: string): number => Math.round(Number(cpus) * 1e9);

/**
 * Returns the arguments that create a container with the environment file at `secretPath`. The container joins only one
 * network.
 */
export function createArguments(body: Body, name: string): string[] {
  const { image = '', command, networks, labels, environment } = body;
  const each = (option: string, values: readonly string[] | null | undefined) =>
    (values ?? []).map((value) => `--${option}=${value}`);
  const one = (option: string, value: string | number | null | undefined) =>
    value == null ? [] : [`--${option}=${value}`];
  const [network] = sorted(networks ?? []);
  return [
    ...['create', `--name=${name}`, '--pull=never'],
    ...(Object.keys(environment ?? {}).length === 0 ? [] : [`--env-file=${secretPath}`]),
    ...Object.entries(labels ?? {}).map(([label, value]) => `--label=${label}=${value}`),
    `--label=${ownerLabel}=${body.name}`,
    `--label=${definitionLabel}=${JSON.stringify(definitionOf(body))}`,
    ...one('network', network),
    ...each('publish', body.ports),
    ...each('volume', body.volumes),
    ...one('user', body.user),
    ...one('restart', body.restart),
    ...one('health-cmd', body.health_command),
    ...one('health-interval', body.health_interval),
    ...one('health-timeout', body.health_timeout),
    ...one('health-retries', body.health_retries),
    ...one('health-start-period', body.health_start_period),
    ...one('memory', body.memory),
    ...one('cpus', body.cpus),
    ...(body.read_only === true ? ['--read-only'] : []),
    ...each('cap-add', body.cap_add),
    ...each('cap-drop', body.cap_drop),
    image ?? '',
    ...(command ?? []),
  ];
}
