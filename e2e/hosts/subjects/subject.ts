import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';
import { fillSecrets, parseModule, resolveDesiredSet } from '@muster/protocol/module';

/** A resource as a module declares it: one kind and its fields. */
export type Declared = { [T in ResourceType]?: Partial<ResourceBodies[T]> };

/** A test subject of the provider contract: one resource of a kind that manages the machine. */
export interface Subject {
  /** The kind, and the special case: `user-unix, taken over`. */
  name: string;
  /** Shell text that prepares the machine before the agent starts. */
  prepare?: string;
  desired: Declared;
  /** The same resource, declared differently. */
  changed: Declared;
  /** Shell text that changes the resource by hand. */
  tamper: string;
  /** The only fields that a drift check must then name. */
  moved: readonly string[];
  /** Shell text that prints state outside files, which removal must restore: `systemctl is-active x || true`. */
  state?: string;
  /** Paths that this kind leaves changed; a comment next to each gives the reason. */
  volatile?: readonly string[];
  /** Each step takes seconds: the agent is killed only before and after the change to the machine. */
  slow?: boolean;
  /** Whether it installs packages: the machine then has the test repository as a source. */
  packages?: boolean;
}

const agent = {
  name: 'subject',
  node_id: '0123456789abcdef0123456789abcdef',
  attributes: { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', init_system: 'systemd' },
  tags: {},
};

/** A declared resource as an orchestrator would send it. */
export function resolved(declared: Declared): ResolvedResource {
  const source = { name: 'site', supports: [{ platform: 'linux' }], resources: [{ id: 'it', resource: declared }] };
  const parsed = parseModule(JSON.stringify(source));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const resolution = resolveDesiredSet({ modules: [parsed.module], agent });
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  const filled = fillSecrets(resolution.resources, () => undefined);
  if (!filled.ok) throw new Error('no secrets in a subject');
  const [resource] = filled.resources;
  if (resource === undefined) throw new Error('nothing is declared');
  return resource;
}
