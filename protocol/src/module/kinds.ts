import { accountKinds } from './kinds/accounts.ts';
import { alternativesKind } from './kinds/alternatives.ts';
import { certificateKinds } from './kinds/certificates.ts';
import { composeKind } from './kinds/containers/compose.ts';
import { containerKind } from './kinds/containers/container.ts';
import { mysqlKinds } from './kinds/databases/mysql.ts';
import { postgresqlKinds } from './kinds/databases/postgresql.ts';
import { dnfModuleKind } from './kinds/dnf-module.ts';
import { archiveKind } from './kinds/downloads/archive.ts';
import { downloadKind } from './kinds/downloads/download.ts';
import { gitKind } from './kinds/downloads/git.ts';
import { fileKinds, scriptKinds } from './kinds/files.ts';
import { firewallRuleKind } from './kinds/firewall-rule.ts';
import { kernelModuleKind } from './kinds/kernel-module.ts';
import type { BodyOf, Kind } from './kinds/kind.ts';
import { knownHostKind } from './kinds/known-host.ts';
import { limitsKind } from './kinds/limits.ts';
import { mountUnixKind } from './kinds/mount-unix.ts';
import { languagePackageKinds, packageKinds } from './kinds/packages.ts';
import { rebootKind } from './kinds/reboot.ts';
import { selinuxKinds } from './kinds/selinux.ts';
import { httpObjectKind } from './kinds/servers/http-object.ts';
import { serviceKinds } from './kinds/services.ts';
import { structuredFileKinds } from './kinds/structured-files.ts';
import { systemKinds } from './kinds/system.ts';
import { unitSystemdKind } from './kinds/unit-systemd.ts';

export type { Kind, Platform, Trigger } from './kinds/kind.ts';

const table = {
  ...packageKinds,
  ...languagePackageKinds,
  ...fileKinds,
  ...structuredFileKinds,
  ...accountKinds,
  ...serviceKinds,
  ...scriptKinds,
  ...alternativesKind,
  ...knownHostKind,
  ...limitsKind,
  ...unitSystemdKind,
  ...firewallRuleKind,
  ...kernelModuleKind,
  ...mountUnixKind,
  ...httpObjectKind,
  ...dnfModuleKind,
  ...systemKinds,
  ...selinuxKinds,
  ...downloadKind,
  ...archiveKind,
  ...gitKind,
  ...containerKind,
  ...composeKind,
  ...postgresqlKinds,
  ...mysqlKinds,
  ...rebootKind,
  ...certificateKinds,
};

export type ResourceType = keyof typeof table;

/** Bodies by kind as sent to agents, with evaluated expressions and without triggers and template. */
export type ResourceBodies = { [T in ResourceType]: BodyOf<(typeof table)[T]> };

/**
 * The body of any kind of resource. After checking `type`, cast it with `resource.body as ResourceBodies['file-unix']`.
 */
export type ResourceBody = ResourceBodies[ResourceType];

/** All kinds by name. A kind's identity space is its name, unless the kind defines another identity space. */
export const kinds: Readonly<Record<ResourceType, Kind>> = Object.fromEntries(
  Object.entries<Kind>(table).map(([type, kind]) => [type, { ...kind, space: kind.space || type }]),
) as Record<ResourceType, Kind>;

export const resourceTypes = Object.keys(kinds) as ResourceType[];

export const isResourceType = (name: string): name is ResourceType => Object.hasOwn(kinds, name);

/** The kinds that the agent of this release applies, for documentation. The agent has its own registry. */
export const executableKinds: ReadonlySet<ResourceType> = new Set(
  resourceTypes.filter((type) => kinds[type].isSupported),
);

/** Returns a resource of the kind with its most used fields, as an entry of `resources` in YAML. */
export const kindExample = (type: ResourceType): string =>
  `- id: example\n  resource:\n    ${type}:\n${kinds[type].example.replace(/^/gm, '      ')}`;

/**
 * Identifies a resource.
 * @param body a body whose identifying fields are evaluated
 * @returns the identity as text, and the key that is unique in a desired state
 */
export function identify(
  type: ResourceType,
  body: Readonly<Record<string, unknown>>,
): { identity: string; key: string } {
  const kind = kinds[type];
  const identity = kind.identity(body);
  return { identity, key: `${kind.space}:${kind.canonical?.(identity) ?? identity}` };
}
