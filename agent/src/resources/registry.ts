import type { ResolvedResource, ResourceType } from '@muster/protocol/module';
import { alternatives } from './alternatives/alternatives.ts';
import { aptRepository } from './apt-repository/apt-repository.ts';
import { archive } from './archive/archive.ts';
import { blockUnix } from './block-unix/block-unix.ts';
import { certificateAcme } from './certificate-acme/certificate-acme.ts';
import { certificateFile } from './certificate-file/certificate-file.ts';
import { compose } from './compose/compose.ts';
import { container } from './container/container.ts';
import { cronUnix } from './cron-unix/cron-unix.ts';
import { directoryUnix } from './directory-unix/directory-unix.ts';
import { dnfModule } from './dnf-module/dnf-module.ts';
import { dnfRepository } from './dnf-repository/dnf-repository.ts';
import { download } from './download/download.ts';
import { fileUnix } from './file-unix/file-unix.ts';
import { firewallRule } from './firewall-rule/firewall-rule.ts';
import { git } from './git/git.ts';
import { groupUnix } from './group-unix/group-unix.ts';
import { hostname } from './hostname/hostname.ts';
import { httpObject } from './http-object/http-object.ts';
import { iniUnix } from './ini-unix/ini-unix.ts';
import { kernelModule } from './kernel-module/kernel-module.ts';
import { knownHost } from './known-host/known-host.ts';
import { limits } from './limits/limits.ts';
import { lineUnix } from './line-unix/line-unix.ts';
import { locale } from './locale/locale.ts';
import { mountUnix } from './mount-unix/mount-unix.ts';
import { mysqlDatabase } from './mysql/database.ts';
import { mysqlGrant } from './mysql/grant.ts';
import { mysqlUser } from './mysql/user.ts';
import { packageApt } from './package-apt/package-apt.ts';
import { packageDnf } from './package-dnf/package-dnf.ts';
import { packageNpm } from './package-npm/package-npm.ts';
import { packagePacman } from './package-pacman/package-pacman.ts';
import { packagePip } from './package-pip/package-pip.ts';
import { packageZypper } from './package-zypper/package-zypper.ts';
import { postgresqlDatabase } from './postgresql/database.ts';
import { postgresqlExtension } from './postgresql/extension.ts';
import { postgresqlGrant } from './postgresql/grant.ts';
import { postgresqlRole } from './postgresql/role.ts';
import { guarded } from './provider/guarded.ts';
import type { Provider } from './provider/provider.ts';
import { reboot } from './reboot/reboot.ts';
import { script } from './script/script.ts';
import { selinuxBoolean } from './selinux/boolean.ts';
import { selinuxContext } from './selinux/context.ts';
import { selinuxMode } from './selinux/mode.ts';
import { selinuxPort } from './selinux/port.ts';
import { serviceOpenrc } from './service-openrc/service-openrc.ts';
import { serviceSystemd } from './service-systemd/service-systemd.ts';
import { sshAuthorizedKey } from './ssh-authorized-key/ssh-authorized-key.ts';
import { jsonUnix, tomlUnix, yamlUnix } from './structured-files/structured-files.ts';
import { swap } from './swap/swap.ts';
import { sysctl } from './sysctl/sysctl.ts';
import { timezone } from './timezone/timezone.ts';
import { unitSystemd } from './unit-systemd/unit-systemd.ts';
import { userUnix } from './user-unix/user-unix.ts';

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
    packageNpm,
    packagePip,
    dnfRepository,
    alternatives,
    knownHost,
    limits,
    unitSystemd,
    firewallRule,
    download,
    archive,
    git,
    container,
    compose,
    postgresqlRole,
    postgresqlDatabase,
    postgresqlGrant,
    postgresqlExtension,
    mysqlUser,
    mysqlDatabase,
    mysqlGrant,
    reboot,
    kernelModule,
    mountUnix,
    certificateFile,
    certificateAcme,
    swap,
    locale,
    selinuxMode,
    selinuxBoolean,
    selinuxPort,
    selinuxContext,
    httpObject,
    dnfModule,
    packageZypper,
    packagePacman,
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
