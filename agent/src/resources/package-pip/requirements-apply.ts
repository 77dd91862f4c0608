import { pythonVersion } from '@muster/protocol/python-version';
import { HostFailure } from '../../host/failure.ts';
import type { Machine } from '../provider/provider.ts';
import { expectKnown } from './declared-packages.ts';
import { hasEnvironmentToRemove } from './diff.ts';
import { linesOfDamaged, lookAtRequirements, type SeenRequirements } from './requirements.ts';
import { runPip } from './run-pip.ts';
import type { DeclaredRequirements, RequirementsBefore } from './seen.ts';

/** Installs the packages that do not satisfy the file, and those with missing files again. */
export async function installRequirements(
  resource: DeclaredRequirements,
  { environment, lines, stale, damaged }: SeenRequirements,
  machine: Machine,
): Promise<void> {
  const { requirements: path } = resource.body;
  if (lines === null) throw new HostFailure(`there is no requirements file ${path}`);
  if (damaged.length > 0) {
    const again = linesOfDamaged({ lines, damaged });
    await runPip(resource, { action: 'install', again: true, lines: again, stale }, { environment }, machine);
  }
  const now = damaged.length === 0 ? { environment, stale } : { environment, stale: [] };
  await runPip(resource, { action: 'install', lines, stale: now.stale }, now, machine);
  const { unmet, damaged: left, fault } = await lookAtRequirements(resource, machine, null);
  if (fault !== null) throw new HostFailure(`pip succeeded, but then the file changed: ${fault}`);
  const [first] = unmet;
  if (first !== undefined)
    throw new HostFailure(
      `pip succeeded, but ${first.wanted} of ${path} is not satisfied: ${first.found === null ? 'it is not installed' : `installed is ${first.found}`}`,
    );
  if (left[0] !== undefined)
    throw new HostFailure(`pip succeeded, but ${left[0].name} lists a file that is missing: ${left[0].file}`);
}

/** Installs former versions again, uninstalls the other packages, and removes an environment that the agent created. */
export async function removeRequirements(
  resource: DeclaredRequirements,
  before: RequirementsBefore,
  seen: SeenRequirements,
  machine: Machine,
): Promise<void> {
  const { restore = [], dependencies = before.dependencies } = seen.removal ?? {};
  // pip marks a dependency that it installs again as requested, so it counts as a package of the file.
  const known = { ...before, dependencies, names: [...before.names, ...seen.damaged.map(({ name }) => name)] };
  // pip can replace and uninstall only packages that have a list of their files.
  if (seen.stale.length > 0) {
    const again = linesOfDamaged(seen);
    await runPip(resource, { action: 'install', again: true, lines: again, stale: seen.stale }, seen, machine);
  }
  // pip compares an exact version as text, so the version is normalized.
  const lines = restore.map(({ name, to }) => `${name}===${pythonVersion(to)?.normal ?? to}`);
  if (lines.length > 0) await runPip(resource, { action: 'install', lines }, seen, machine);
  // Only now is it known which dependencies the restored versions do not need, and pip marked them as requested.
  let now = lines.length > 0 ? await lookAtRequirements(resource, machine, known) : seen;
  expectKnown(now);
  const { uninstall = [], marks = [] } = now.removal ?? {};
  if (uninstall.length > 0 || marks.length > 0 || now.isInterrupted) {
    const [names, stale] = [uninstall.map(({ name }) => name), marks.map(({ path }) => path)];
    await runPip(resource, { action: 'uninstall', names, stale }, now, machine);
    now = await lookAtRequirements(resource, machine, known);
  }
  if (hasEnvironmentToRemove(before, now)) {
    const removesDirectory = before.environment === 'absent';
    await runPip(resource, { action: 'clear', removesDirectory }, now, machine);
  }
}
