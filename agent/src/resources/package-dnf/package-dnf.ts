import { HostFailure } from '../../host/failure.ts';
import {
  dnf,
  dnfQuery,
  dnfQueryWithErrors,
  dnfRemoveExactly,
  dnfSourcesStamp,
  dnfWould,
} from '../../host/packages/dnf.ts';
import {
  dnfComplaint,
  isDnfLocked,
  isDnfRefusal,
  parseRemoval,
  scriptComplaint,
} from '../../host/packages/dnf-output.ts';
import { splitName } from '../../host/packages/installed-packages.ts';
import { parsePackages, readRpm } from '../../host/packages/rpm.ts';
import { compareRpmVersions } from '../../host/packages/rpm-version.ts';
import { versionLocks } from '../../host/packages/version-locks.ts';
import { packageProvider } from '../package-tool/package-provider.ts';
import { packageTool } from '../package-tool/package-tool.ts';
import { rpmFile } from '../package-tool/rpm-file.ts';
import type { Freshness, RequestedPackage } from '../package-tool/tool.ts';

/** Maximum age of repository metadata in seconds. Older metadata is refreshed before use. */
const freshForSecs = 3600;

const freshnessOptions: Readonly<Record<Freshness, readonly string[]>> = {
  known: ['--cacheonly'],
  hourly: [`--setopt=metadata_expire=${freshForSecs}`],
  now: ['--refresh'],
};

const queryFormat = '%{name}\\t%{epoch}\\t%{version}\\t%{release}\\t%{arch}';

/** Returns the options of dnf with which it reads only this repository, even if that is disabled. */
const only = (from: string | null): string[] => (from === null ? [] : [`--repo=${from}`]);

const specOf = ({ name, version, file }: RequestedPackage): string => {
  if (file !== null) return file;
  if (version === null) return name;
  // dnf expects the architecture after the version.
  const [baseName, arch] = splitName(name, () => false);
  return arch === null ? `${name}-${version}` : `${baseName}-${version}.${arch}`;
};

/**
 * Returns the arguments of dnf for packages of one repository. With `repository-packages`, dnf enables the repository,
 * installs only the packages themselves from it, and their dependencies from any enabled one.
 */
function installing(requested: readonly RequestedPackage[]): string[] {
  const from = requested[0]?.from ?? null;
  const command = from === null ? ['install', '--'] : ['repository-packages', from, 'install'];
  return [...command, ...requested.map(specOf)];
}

/** dnf, with its plugin versionlock for `hold`. */
export const dnfTool = packageTool({
  type: 'package-dnf',
  program: 'dnf',
  readInstalled: readRpm,
  compare: compareRpmVersions,
  preferredLast: (versions) => [...versions].sort(compareRpmVersions),
  locks: versionLocks,
  lockedBecause: (name) => ({
    reason: "locked by dnf's versionlock on this machine",
    remedy: `to release it, run: dnf versionlock delete ${name}`,
  }),
  cannotHold: (name) =>
    `\`hold\` of ${name} needs dnf's plugin versionlock; install python3-dnf-plugin-versionlock, or enable the plugin in /etc/dnf/plugins/versionlock.conf`,
  files: rpmFile,
  sourcesStamp: dnfSourcesStamp,

  async offers(names, from, freshness, machine) {
    const options = [...freshnessOptions[freshness], ...only(from)];
    const args = [...options, 'repoquery', '--available', '--qf', queryFormat, '--', ...names];
    const { exitCode, stdout, stderr } = await (freshness === 'known' ? dnfQuery : dnfQueryWithErrors)(args, machine);
    const failed = exitCode !== 0 || /^(Error|Errors during downloading)/m.test(stderr);
    return {
      packages: parsePackages(stdout),
      trouble: failed ? dnfComplaint(stderr) : null,
      isNew: freshness === 'now',
    };
  },

  async providersOf(name, from, machine) {
    const args = [...only(from), 'repoquery', '--available', '--qf', '%{name}', '--whatprovides', name];
    const { stdout } = await dnfQuery(args, machine);
    return [...new Set(stdout.split('\n').filter((line) => /^[A-Za-z0-9_]\S*$/.test(line)))].sort().slice(0, 10);
  },

  install: (requested, machine) => dnf(installing(requested), machine),

  async refusal(requested, machine) {
    const { exitCode, stdout, stderr } = await dnfWould(installing([requested]), machine);
    const said = `${stdout}\n${stderr}`;
    // dnf reports an error if its prompt is automatically answered with "no".
    return exitCode === 0 || /^Operation aborted\.$/m.test(said) ? null : dnfComplaint(said);
  },

  async markAsDependencies(names, machine) {
    const { exitCode, output } = await dnf(['mark', 'remove', '--', ...names], machine);
    return exitCode === 0 ? null : dnfComplaint(output);
  },

  async whatGoes(names, { unused }, machine) {
    const options = unused ? ['--setopt=clean_requirements_on_remove=True'] : [];
    const { stdout, stderr } = await dnfWould([...options, 'remove', '--', ...names], machine);
    if (/^Operation aborted\.$/m.test(`${stdout}\n${stderr}`)) return parseRemoval(stdout);
    return dnfComplaint(`${stdout}\n${stderr}`);
  },

  removeExactly(packages, machine) {
    const nevras = packages.map(({ spec }) => spec);
    return dnfRemoveExactly(nevras, machine);
  },

  isLocked: isDnfLocked,
  isRefusal: isDnfRefusal,
  complaint: dnfComplaint,
  scriptComplaint,

  // Removes the old versions of packages whose upgrade was interrupted.
  async recover(machine) {
    const check = await dnfQuery(['--cacheonly', 'check', '--duplicates'], machine);
    if (!/ is a duplicate with /.test(`${check.stdout}\n${check.stderr}`)) return;
    const { exitCode, output } = await dnf(['remove', '--duplicates'], machine);
    machine.stale();
    if (exitCode !== 0) throw new HostFailure(`dnf could not finish an interrupted upgrade: ${dnfComplaint(output)}`);
  },
});

/** A package for Fedora or a related distribution, with dnf and rpm. */
export const packageDnf = packageProvider(
  'package-dnf',
  {
    name: 'text',
    version: 'text?',
    hold: 'boolean?',
    from: 'text?',
    source: 'text?',
    url: 'text?',
    sha256: 'text?',
    ensure: 'text?',
  },
  dnfTool,
);
