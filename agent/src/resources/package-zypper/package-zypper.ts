import { splitName } from '../../host/packages/installed-packages.ts';
import { readRpm } from '../../host/packages/rpm.ts';
import { eraseExactly, isEraseRefusal, removeOldHalves, rpmSpec } from '../../host/packages/rpm-erase.ts';
import { compareRpmVersions } from '../../host/packages/rpm-version.ts';
import { zyppLocks } from '../../host/packages/zypper/zypp-locks.ts';
import {
  multiversionSpecs,
  zypper,
  zypperQuery,
  zypperRefresh,
  zypperSourcesStamp,
} from '../../host/packages/zypper/zypper.ts';
import {
  isZypperLocked,
  parseNames,
  parseOffers,
  parseRemovals,
  textOfXml,
  zypperComplaint,
  zypperScriptComplaint,
} from '../../host/packages/zypper/zypper-output.ts';
import { LeftRunning, type TransactionResult } from '../../host/processes/transaction.ts';
import { packageProvider } from '../package-tool/package-provider.ts';
import { packageTool } from '../package-tool/package-tool.ts';
import { rpmFile } from '../package-tool/rpm-file.ts';
import { type RequestedPackage, removalOf } from '../package-tool/tool.ts';
import type { Machine } from '../provider/provider.ts';

const specOf = ({ name, version, file }: RequestedPackage): string =>
  file ?? (version === null ? name : `${name}=${version}`);

const installArguments = (requested: readonly RequestedPackage[]): string[] => [
  ...['install', '--auto-agree-with-licenses', '--oldpackage', '--no-force-resolution', '--name'],
  // Accepts unsigned files, because the agent has already verified their hash.
  ...(requested.some(({ file }) => file !== null) ? ['--allow-unsigned-rpm'] : []),
  ...['--', ...requested.map(specOf)],
];

/** From 100, the codes of zypper are remarks, such as a required restart or a failed script of an installed package. */
const hasFailed = (exitCode: number | null): boolean => exitCode === null || (exitCode > 0 && exitCode < 100);

/** @returns why a repository could not be refreshed, or null */
async function refresh(machine: Machine): Promise<string | null> {
  const { exitCode, stdout, stderr } = await zypperRefresh(machine);
  return exitCode === 0 ? null : zypperComplaint(`${stdout}\n${stderr}`);
}

/** Private file with the installed packages, from `rpmSpec`, while a transaction that the agent started runs. */
const packagesBefore = 'zypper-packages-before';

/** Installs packages. Until the transaction has ended, `recover` can find the versions that it replaces. */
async function install(requested: readonly RequestedPackage[], machine: Machine): Promise<TransactionResult> {
  await recover(machine);
  const { packages } = await machine.database(zypperTool.database);
  machine.privateFiles.write(packagesBefore, JSON.stringify([...packages.values()].flat().map(rpmSpec)));
  try {
    const result = await zypper(installArguments(requested), machine);
    // A zypper that was killed may leave old versions, which the next installation removes.
    if (result.exitCode !== null) machine.privateFiles.remove(packagesBefore);
    return result;
  } catch (error) {
    if (!(error instanceof LeftRunning)) machine.privateFiles.remove(packagesBefore);
    throw error;
  }
}

/** Removes the versions that an interrupted installation had to replace, but no other ones, which users may need. */
async function recover(machine: Machine): Promise<void> {
  const before = machine.privateFiles.read(packagesBefore);
  if (before === null) return;
  const known = new Set(JSON.parse(before) as string[]);
  const hasChanged = await removeOldHalves(
    await machine.database(zypperTool.database),
    known,
    multiversionSpecs(),
    machine,
  );
  if (hasChanged) machine.stale();
  machine.privateFiles.remove(packagesBefore);
}

/** zypper, with its own locks for `hold`. */
export const zypperTool = packageTool({
  type: 'package-zypper',
  program: 'zypper',
  readInstalled: readRpm,
  compare: compareRpmVersions,
  preferredLast: (versions) => [...versions].sort(compareRpmVersions),
  locks: zyppLocks,
  lockedBecause: (name) => ({
    reason: 'locked in /etc/zypp/locks on this machine',
    remedy: `to release it, run: zypper removelock ${name}`,
  }),
  cannotHold: (name) => `\`hold\` of ${name} needs zypper`,
  files: rpmFile,
  sourcesStamp: zypperSourcesStamp,

  async offers(names, _from, freshness, machine) {
    // zypper itself finds out which repositories have changed, with one request for each.
    const trouble = freshness === 'known' ? null : await refresh(machine);
    const baseNames = [...new Set(names.map((name) => splitName(name, () => false)[0]))];
    const args = ['--xmlout', 'search', '--details', '--match-exact', '--type', 'package', '--', ...baseNames];
    const { exitCode, stdout, stderr } = await zypperQuery(args, machine);
    const failure = hasFailed(exitCode) ? zypperComplaint(`${textOfXml(stdout)}\n${stderr}`) : null;
    return { packages: parseOffers(stdout), trouble: failure ?? trouble, isNew: freshness !== 'known' };
  },

  async providersOf(name, _from, machine) {
    const args = ['--xmlout', 'search', '--provides', '--match-exact', '--type', 'package', '--', name];
    return parseNames((await zypperQuery(args, machine)).stdout)
      .sort()
      .slice(0, 10);
  },

  install,

  async refusal(requested, machine) {
    const [command = '', ...args] = installArguments([requested]);
    const { exitCode, stdout, stderr } = await zypperQuery([command, '--dry-run', ...args], machine);
    return exitCode !== 104 && !hasFailed(exitCode) ? null : zypperComplaint(`${stdout}\n${stderr}`);
  },

  // zypper records each package when it is installed.
  markAsDependencies: async () => null,

  async whatGoes(names, { unused }, machine) {
    const clean = unused ? '--clean-deps' : '--no-clean-deps';
    const args = ['--xmlout', 'remove', '--dry-run', '--name', '--force-resolution', clean, '--', ...names];
    const { exitCode, stdout, stderr } = await zypperQuery(args, machine);
    const going = parseRemovals(stdout);
    if (hasFailed(exitCode) || going.length === 0) return zypperComplaint(`${textOfXml(stdout)}\n${stderr}`);
    const requested = new Set(names.flatMap((name) => [name, splitName(name, () => false)[0]]));
    const all = going.map((found) => ({ name: found.name, spec: rpmSpec(found) }));
    return removalOf(all, (name) => requested.has(name), { unused });
  },

  // zypper always removes dependents, too.
  removeExactly(packages, machine) {
    const specs = packages.map(({ spec }) => spec);
    return eraseExactly(specs, machine);
  },

  isLocked: isZypperLocked,
  isRefusal: isEraseRefusal,
  complaint: zypperComplaint,
  scriptComplaint: zypperScriptComplaint,

  recover,
});

/** A package for openSUSE or SUSE Linux Enterprise, with zypper and rpm. */
export const packageZypper = packageProvider(
  'package-zypper',
  {
    name: 'text',
    version: 'text?',
    hold: 'boolean?',
    source: 'text?',
    url: 'text?',
    sha256: 'text?',
    ensure: 'text?',
  },
  zypperTool,
);
