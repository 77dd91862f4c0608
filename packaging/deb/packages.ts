import { mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type InstallFolder, installFolder } from '../install/folder.ts';
import { type Compression, type DebianPackage, type PackagedFile, writePackage } from './archive.ts';
import { maintainerScripts } from './maintainer-scripts.ts';

/**
 * Builds three packages: `muster` contains the program; `muster-agent` and `muster-orchestrator` contain a systemd unit
 * and its configuration. `muster-orchestrator` also contains the other two packages, so that machines can install the
 * agent from the orchestrator.
 */

export interface PackageOptions {
  /** Path of the executable for all roles. */
  executable: string;
  version: string;
  /** Debian's architecture name, such as `amd64`. */
  architecture: string;
  /** Output folder. */
  out: string;
  /** Modification time of all files in the packages, in Unix seconds. */
  epoch: number;
  licences: string;
  /** Compression of the program. xz takes twenty seconds, but shrinks the package by a third. */
  compression?: Compression;
  /** Completion files, by shell. */
  completions?: Readonly<Partial<Record<'bash' | 'zsh' | 'fish', string>>>;
}

const here = import.meta.dirname;
const root = join(here, '../..');
const completionPaths = {
  bash: '/usr/share/bash-completion/completions/muster',
  zsh: '/usr/share/zsh/vendor-completions/_muster',
  fish: '/usr/share/fish/vendor_completions.d/muster.fish',
};

/** Folder in the orchestrator package with the files for installing agents on other machines. */
const servedFolder = '/usr/share/muster/install';

const orchestratorWelcome = `
The Muster orchestrator is running. To become its first admin, run as your own user:

  sudo muster orchestrator init --username "$USER" --operator-key "$(muster operator init)"
  muster agents list
`;
const agentWelcome = `
The Muster agent is installed. To connect it, create a token with "muster agents enroll" on the orchestrator, then run:

  sudo muster agent connect HOST:4747 --orchestrator-key KEY --token TOKEN --save
  sudo systemctl start muster-agent
`;

export interface Packages {
  readonly muster: string;
  readonly agent: string;
  readonly orchestrator: string;
}

/** Returns the paths of the three packages in a folder. */
export const packagesIn = (folder: string, version: string, architecture: string): Packages => ({
  muster: join(folder, `muster_${version}_${architecture}.deb`),
  agent: join(folder, `muster-agent_${version}_all.deb`),
  orchestrator: join(folder, `muster-orchestrator_${version}_${architecture}.deb`),
});

/**
 * Builds the three packages.
 * @returns their paths
 */
export function buildPackages(options: PackageOptions): Packages {
  const { executable, version, architecture, out, epoch, compression = 'xz' } = options;
  const paths = packagesIn(out, version, architecture);
  mkdirSync(out, { recursive: true });
  write(programPackage(options), paths.muster, epoch, compression);
  write(agentPackage(version), paths.agent, epoch, 'gzip');
  const served = servedFiles(installFolder(version, executable, [paths.muster, paths.agent]));
  // The served packages are already compressed.
  write(orchestratorPackage(version, served), paths.orchestrator, epoch, 'none');
  return paths;
}

type Contents = Omit<DebianPackage, 'control'> & {
  readonly about: Readonly<{ Depends: string; Recommends?: string; Description: string }>;
};

/** Writes a package under its Debian file name. */
function write({ about, files, conffiles, scripts }: Contents, path: string, epoch: number, how: Compression): void {
  const [name = '', version = '', architecture = ''] = basename(path, '.deb').split('_');
  rmSync(path, { force: true });
  const control = {
    Package: name,
    Version: version,
    Architecture: architecture,
    Maintainer: 'The Muster authors <muster@localhost>',
    Section: 'admin',
    Priority: 'optional',
    ...about,
  };
  const all = { ...files, ...documents(name, version, epoch) };
  writePackage({ control, files: all, conffiles, scripts }, path, epoch, how);
}

const programPackage = ({ executable, licences, completions = {} }: PackageOptions): Contents => ({
  about: {
    // The library versions that Node.js requires. Debian 10, Ubuntu 20.04, and later releases provide them.
    Depends: 'libc6 (>= 2.28), libgcc-s1 | libgcc1, libstdc++6 (>= 8)',
    Description:
      'self-hosted orchestrator for fleets of real machines\n Keeps machines in the state you declare: files, packages, services, users.\n This is the program: command line, agent, and orchestrator in one.',
  },
  files: {
    '/usr/bin/muster': { copy: executable, mode: 0o755 },
    '/usr/share/doc/muster/THIRD-PARTY-LICENCES.gz': { content: gzipSync(licences, { level: 9 }) },
    ...Object.fromEntries(
      Object.entries(completions).map(([shell, text]) => [
        completionPaths[shell as keyof typeof completionPaths],
        { content: text },
      ]),
    ),
  },
  conffiles: [],
  scripts: {},
});

const unitFiles = (role: 'agent' | 'orchestrator'): Record<string, PackagedFile> => ({
  [`/lib/systemd/system/muster-${role}.service`]: { copy: join(here, `../systemd/muster-${role}.service`) },
  [`/etc/muster/${role}.yml`]: { copy: join(here, `${role}.yml`) },
});

const agentPackage = (version: string): Contents => ({
  about: {
    Depends: `muster (= ${version}), init-system-helpers (>= 1.52)`,
    Recommends: 'systemd',
    Description:
      'agent for Muster, the orchestrator for fleets of real machines\n Connects this machine to its orchestrator and keeps it in the declared state.',
  },
  files: unitFiles('agent'),
  conffiles: ['/etc/muster/agent.yml'],
  scripts: maintainerScripts({
    unit: 'muster-agent.service',
    welcome: agentWelcome,
    leftBehind: ['/var/lib/muster-agent', '/etc/muster/agent.discover'],
  }),
});

const orchestratorConfig = '/etc/muster/orchestrator.yml';

/**
 * Describes the orchestrator package.
 * @param served files for installing agents on other machines
 */
const orchestratorPackage = (version: string, served: Record<string, PackagedFile>): Contents => ({
  about: {
    // The passwd package provides groupadd.
    Depends: `muster (= ${version}), init-system-helpers (>= 1.52), passwd`,
    Recommends: 'systemd',
    Description:
      'Muster orchestrator for fleets of real machines\n The server that agents connect to, with its database and API.\n Contains the packages that machines install the agent from.',
  },
  files: {
    ...unitFiles('orchestrator'),
    [orchestratorConfig]: { copy: join(here, 'orchestrator.yml'), mode: 0o640 },
    // The backup units are inactive until an administrator enables the timer.
    ...Object.fromEntries(
      ['service', 'timer'].map((kind) => [
        `/lib/systemd/system/muster-backup.${kind}`,
        { copy: join(here, `../systemd/muster-backup.${kind}`) },
      ]),
    ),
    ...served,
  },
  conffiles: [orchestratorConfig],
  scripts: maintainerScripts({
    unit: 'muster-orchestrator.service',
    timer: 'muster-backup.timer',
    welcome: orchestratorWelcome,
    closedConfig: { path: orchestratorConfig, group: 'muster' },
    leftBehind: [
      // Native addons, which commands such as backup and export extract when root runs them.
      '/var/cache/muster',
      ...['lib', 'cache', 'log'].flatMap((kind) => [
        `/var/${kind}/muster-orchestrator`,
        `/var/${kind}/private/muster-orchestrator`,
      ]),
      '/etc/muster/orchestrator.env',
      '/etc/muster/backup.env',
      // `systemctl enable` and `systemctl edit` create these files. Backups remain.
      '/etc/systemd/system/timers.target.wants/muster-backup.timer',
      '/etc/systemd/system/muster-backup.timer.d',
      '/etc/systemd/system/muster-backup.service.d',
      '/var/lib/systemd/timers/stamp-muster-backup.timer',
    ],
  }),
});

const servedFiles = ({ files }: InstallFolder): Record<string, PackagedFile> =>
  Object.fromEntries(Object.entries(files).map(([name, file]) => [`${servedFolder}/${name}`, file]));

/** Returns the documents that Debian policy requires in each package. */
function documents(name: string, version: string, epoch: number): Record<string, PackagedFile> {
  const date = new Date(epoch * 1000).toUTCString().replace('GMT', '+0000');
  const changelog = `${name} (${version}) stable; urgency=medium\n\n  * Release ${version}.\n\n -- The Muster authors <muster@localhost>  ${date}\n`;
  return {
    [`/usr/share/doc/${name}/copyright`]: { copy: join(root, 'LICENSE') },
    [`/usr/share/doc/${name}/changelog.gz`]: { content: gzipSync(changelog, { level: 9 }) },
  };
}
