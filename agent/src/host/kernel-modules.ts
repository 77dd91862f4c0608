import { HostFailure } from './failure.ts';
import { failureText, lastLine } from './processes/failure-text.ts';
import { missingProgram } from './processes/find-program.ts';
import { type CommandResult, type Runner, runInEnglish } from './processes/run-command.ts';
import { readText } from './read-system.ts';

/** Reads the list of kernel modules, and loads and unloads modules with modprobe(8). */

/** Kernel modules, under the names that the kernel uses. */
export interface KernelModules {
  /**
   * Users of each loaded module: names of other modules, or the number of other users. Empty if the module is not in
   * use.
   */
  loaded: ReadonlyMap<string, string>;
  /** Modules that are built into the kernel. */
  builtIn: ReadonlySet<string>;
}

const timeLimit = 60_000;

/** Returns the name in the kernel's spelling, which contains no "-". */
export const moduleNameOf = (name: string): string => name.replaceAll('-', '_');

/** @throws HostFailure if lsmod fails */
export async function readModules(runner: Runner): Promise<KernelModules> {
  const release = readText('/proc/sys/kernel/osrelease')?.trim() ?? '';
  return {
    loaded: parseModules(await listModules(runner)),
    builtIn: parseBuiltIn(readText(`/lib/modules/${release}/modules.builtin`) ?? ''),
  };
}

async function listModules(runner: Runner): Promise<string> {
  // Without module support, the kernel has no /proc/modules.
  if (missingProgram('lsmod') !== null) return readText('/proc/modules') ?? '';
  const result = await run('lsmod', [], runner);
  if (result.exitCode === 0 && !result.truncated) return result.stdout;
  throw new HostFailure(`cannot list the kernel modules: ${failureText(result, 'lsmod', timeLimit, lastLine)}`);
}

// On a large machine, the list is about 20 KB.
const limits = { timeLimit, outputCap: 1024 * 1024 };

const run = (program: string, args: readonly string[], runner: Runner): Promise<CommandResult> =>
  runInEnglish(program, args, limits, runner);

/**
 * @param text output of lsmod, or content of /proc/modules: each line has a module's name, size, number of users, and
 * users
 */
export function parseModules(text: string): Map<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('Module '));
  return new Map(
    lines.map((line) => {
      const [name = '', , count = '0', users = '-'] = line.split(/\s+/);
      const named = users === '-' ? '' : users.split(',').filter(Boolean).join(', ');
      return [name, named !== '' ? named : count === '0' ? '' : `${count} users`];
    }),
  );
}

/** @param text paths of module files, one per line */
export const parseBuiltIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/([^/\n]+)\.ko\b[^\n]*$/gm)].map(([, name = '']) => moduleNameOf(name)));

/** Returns how to install modprobe if it is missing; otherwise null. */
export const missingModprobe = (): string | null =>
  missingProgram('modprobe') === null ? null : 'there is no program modprobe; install the package `kmod`';

/**
 * Loads or unloads a module, together with the modules that only this module needs.
 * @throws HostFailure with the last line that modprobe printed
 */
export async function modprobe(verb: 'load' | 'unload', name: string, runner: Runner): Promise<void> {
  const missing = missingModprobe();
  if (missing !== null) throw new HostFailure(missing);
  const result = await run('modprobe', [...(verb === 'load' ? [] : ['-r']), '--', name], runner);
  if (result.exitCode === 0) return;
  throw new HostFailure(
    `cannot ${verb} the kernel module ${name}: ${failureText(result, 'modprobe', timeLimit, lastLine)}`,
  );
}
