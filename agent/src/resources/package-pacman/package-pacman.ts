import { ignoredPackages } from '../../host/packages/pacman/ignored-packages.ts';
import {
  pacman,
  pacmanQuery,
  pacmanRefresh,
  pacmanRemoveExactly,
  pacmanSourcesStamp,
  readPacman,
} from '../../host/packages/pacman/pacman.ts';
import {
  isPacmanLocked,
  isPacmanRefusal,
  type Listed,
  pacmanComplaint,
  pacmanScriptComplaint,
  parseList,
  parseNames,
} from '../../host/packages/pacman/pacman-output.ts';
import { comparePacmanVersions } from '../../host/packages/pacman/pacman-version.ts';
import { removeStaleLock } from '../../host/packages/pacman/stale-lock.ts';
import { versionText } from '../../host/packages/rpm-version.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';
import { packageProvider } from '../package-tool/package-provider.ts';
import { packageTool } from '../package-tool/package-tool.ts';
import { type RequestedPackage, removalOf } from '../package-tool/tool.ts';
import type { Machine } from '../provider/provider.ts';

const allOf = ({ stdout, stderr }: Pick<CommandResult, 'stdout' | 'stderr'>): string => `${stdout}\n${stderr}`;

const list = async (machine: Machine): Promise<{ packages: Listed[]; result: CommandResult }> => {
  const result = await pacmanQuery(['--sync', '--list'], machine);
  return { packages: parseList(result.stdout), result };
};

/** Inverts the default answer to the question whether to install a package that the administrator ignores: no. */
const keepIgnored = ['--ask', '1'];

/** Names the repository of a requested version, because pacman itself takes the package of the first repository. */
async function installArguments(requested: readonly RequestedPackage[], machine: Machine): Promise<string[]> {
  const offered = requested.some(({ version }) => version !== null) ? (await list(machine)).packages : [];
  const specs = requested.map(({ name, version }) => {
    const from = offered.find((found) => found.name === name && versionText(found) === version);
    return from === undefined ? name : `${from.repository}/${name}`;
  });
  return ['--sync', '--needed', ...keepIgnored, '--', ...specs];
}

/** pacman, with `IgnorePkg` for `hold`. */
export const pacmanTool = packageTool({
  type: 'package-pacman',
  program: 'pacman',
  readInstalled: readPacman,
  compare: comparePacmanVersions,
  // The order of the repositories decides, not the version.
  preferredLast: (versions) => [...versions].reverse(),
  locks: ignoredPackages,
  lockedBecause: (name) => ({
    reason: 'in IgnorePkg of /etc/pacman.conf on this machine',
    remedy: `to release it, remove ${name} there`,
  }),
  cannotHold: (name) => `\`hold\` of ${name} needs pacman`,
  files: null,
  sourcesStamp: pacmanSourcesStamp,

  async offers(names, _from, freshness, machine) {
    const refreshed = freshness === 'known' ? null : await pacmanRefresh(machine);
    const { packages, result } = await list(machine);
    const wanted = new Set(names);
    const trouble =
      refreshed !== null && refreshed.exitCode !== 0
        ? pacmanComplaint(refreshed.output)
        : result.exitCode !== 0
          ? pacmanComplaint(allOf(result))
          : null;
    return { packages: packages.filter(({ name }) => wanted.has(name)), trouble, isNew: refreshed !== null };
  },

  // A dry run without dependencies shows the package that pacman would install for the name.
  async providersOf(name, _from, machine) {
    const args = ['--sync', '--nodeps', '--nodeps', '--print', '--print-format', '%n', '--', name];
    const { exitCode, stdout } = await pacmanQuery(args, machine);
    return exitCode === 0 ? parseNames(stdout).slice(-1) : [];
  },

  install: async (requested, machine) => pacman(await installArguments(requested, machine), machine),

  async refusal(requested, machine) {
    const [command = '', ...args] = await installArguments([requested], machine);
    const result = await pacmanQuery([command, '--print', '--print-format', '%n', ...args], machine);
    return result.exitCode === 0 ? null : pacmanComplaint(allOf(result));
  },

  // pacman records each package when it is installed.
  markAsDependencies: async () => null,

  async whatGoes(names, { unused }, machine) {
    const recursive = unused ? ['--recursive'] : [];
    const args = ['--remove', '--cascade', ...recursive, '--print', '--print-format', '%n', '--', ...names];
    const result = await pacmanQuery(args, machine);
    if (result.exitCode !== 0) return pacmanComplaint(allOf(result));
    const all = parseNames(result.stdout).map((name) => ({ name, spec: name }));
    return removalOf(all, (name) => names.includes(name), { unused });
  },

  removeExactly: (packages, machine) =>
    pacmanRemoveExactly(
      packages.map(({ spec }) => spec),
      machine,
    ),

  isLocked: isPacmanLocked,
  isRefusal: isPacmanRefusal,
  complaint: pacmanComplaint,
  scriptComplaint: pacmanScriptComplaint,
  recover: async () => removeStaleLock(),
});

/** A package for Arch Linux or a related distribution, with pacman. */
export const packagePacman = packageProvider(
  'package-pacman',
  { name: 'text', version: 'text?', hold: 'boolean?', ensure: 'text?' },
  pacmanTool,
);
