import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';
import { fillSecrets, parseModule, resolveDesiredSet } from '@muster/protocol/module';

/** A resource as in a module: its kind with its fields. */
export type Declared = { [T in ResourceType]?: Partial<ResourceBodies[T]> };

/** A resource to test the provider contract with. */
export interface Subject {
  /** The kind and the case, such as `user-unix, adopted`. */
  name: string;
  /** Shell text that prepares the machine before the agent starts. */
  prepare?: string;
  desired: Declared;
  /** The same resource with different fields. Absent if only the identity can differ. */
  changed?: Declared;
  /** Paths of files on the prepared machine whose SHA-256 is the `sha256` of the declarations. */
  hashed?: { desired?: string; changed?: string };
  /** Shell text that changes the resource manually. */
  tamper: string;
  /** The fields that a drift check reports after `tamper`. */
  moved: readonly string[];
  /**
   * Shell text that prints the state, apart from files, that the removal must restore. Example:
   * `systemctl is-active x || true`.
   */
  state?: string;
  /** Paths to ignore in comparisons, because a removal does not restore them. */
  volatile?: readonly string[];
  /** Whether each step takes seconds, in which case the tests kill the agent at fewer steps. */
  slow?: boolean;
  /** Whether the machine needs the test repository as an apt source. */
  packages?: boolean;
}

const agent = {
  name: 'subject',
  node_id: '0123456789abcdef0123456789abcdef',
  attributes: { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', init_system: 'systemd' },
  tags: {},
};

/** Returns the kind of a subject, such as `user-unix`. */
export const kindOf = ({ desired }: Subject): string | undefined => Object.keys(desired)[0];

/** Returns a declared resource in the form that an orchestrator sends. */
export function resolved(declared: Declared): ResolvedResource {
  const source = { name: 'site', supports: [{ platform: 'linux' }], resources: [{ id: 'it', resource: declared }] };
  const [resource] = resolvedModule(JSON.stringify(source));
  if (resource === undefined) throw new Error('a subject must declare a resource');
  return resource;
}

/**
 * Returns the resources of a module in the form that an orchestrator sends.
 * @param source the module, without secrets
 * @param family of the machine's distribution
 */
export function resolvedModule(source: string, family = 'debian'): ResolvedResource[] {
  const parsed = parseModule(source);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const attributes = { ...agent.attributes, family };
  const resolution = resolveDesiredSet({ modules: [parsed.module], agent: { ...agent, attributes } });
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  const filled = fillSecrets(resolution.resources, () => undefined);
  if (!filled.ok) throw new Error('the resources must not contain secrets');
  return filled.resources;
}
