import type { ResolvedResource, ResourceType } from '@muster/protocol/module';
import { alternatives } from '../alternatives.ts';
import { aptRepository } from '../apt-repository.ts';
import { archive } from '../archive.ts';
import { blockUnix } from '../block-unix.ts';
import { cronUnix } from '../cron-unix.ts';
import { directoryUnix } from '../directory-unix.ts';
import { dnfRepository } from '../dnf-repository.ts';
import { download } from '../download.ts';
import { fileUnix } from '../file-unix.ts';
import { firewallRule } from '../firewall-rule.ts';
import { git } from '../git.ts';
import { groupUnix } from '../group-unix.ts';
import { hostname } from '../hostname.ts';
import { iniUnix } from '../ini-unix.ts';
import { knownHost } from '../known-host.ts';
import { limits } from '../limits.ts';
import { lineUnix } from '../line-unix.ts';
import { packageApt } from '../package-apt.ts';
import { packageDnf } from '../package-dnf.ts';
import { script } from '../script.ts';
import { serviceOpenrc } from '../service-openrc.ts';
import { serviceSystemd } from '../service-systemd.ts';
import { sshAuthorizedKey } from '../ssh-authorized-key.ts';
import { jsonUnix, tomlUnix, yamlUnix } from '../structured-files.ts';
import { sysctl } from '../sysctl.ts';
import { timezone } from '../timezone.ts';
import { unitSystemd } from '../unit-systemd.ts';
import { userUnix } from '../user-unix.ts';
import { guarded } from './guarded.ts';
import type { Provider } from './provider.ts';

const providers: ReadonlyMap<string, Provider> = new Map(
  [
    // This comment makes the formatter keep each provider on its own line.
    fileUnix,
    directoryUnix,
    blockUnix,
    cronUnix,
    groupUnix,
    lineUnix,
    iniUnix,
    jsonUnix,
    yamlUnix,
    tomlUnix,
    script,
    sshAuthorizedKey,
    sysctl,
    hostname,
    timezone,
    userUnix,
    serviceSystemd,
    serviceOpenrc,
    packageApt,
    aptRepository,
    packageDnf,
    dnfRepository,
    alternatives,
    knownHost,
    limits,
    unitSystemd,
    firewallRule,
    download,
    archive,
    git,
  ].map((provider) => [provider.type, guarded(provider as unknown as Provider)]),
);

/** Returns the provider for a type, or null if this agent does not support the type. */
export const providerOf = (type: ResourceType): Provider | null => providers.get(type) ?? null;

/** Returns the paths where a change may mean that a resource has drifted. */
export function watchedPaths(resource: ResolvedResource): readonly string[] {
  const provider = providerOf(resource.type);
  if (provider === null) return [];
  if (provider.watched !== undefined) return provider.watched(resource);
  const path = provider.path(resource);
  return path === null ? [] : [path];
}
