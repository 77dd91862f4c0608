import { basename, dirname, join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import { getModule, getModuleFile } from '@muster/protocol/http';
import {
  declaredName,
  folderLimits,
  type ModuleFile,
  type ModuleFolder,
  moduleFileName,
  type ParsedModule,
  parseModule,
  templateFilesOf,
} from '@muster/protocol/module';
import type { Context } from '../../context/context.ts';
import { CliError, exits } from '../../exit.ts';
import { folderAt, readFolder } from './module-folder.ts';
import { isFile, onlyOneStdin, readSource, suggestModule } from './modules-source.ts';
import { faulty, type TriedModule } from './trial-sources.ts';

/** Reads the modules for a trial from files, folders, and the orchestrator. */

interface ReadModule {
  readonly source: string;
  readonly bytes: Uint8Array;
  readonly parsed: ParsedModule;
}

/**
 * Reads modules from files, from folders with their files, or from the orchestrator.
 * @throws CliError if a module has errors, after printing them
 */
export async function readModules(context: Context, words: readonly string[]): Promise<TriedModule[]> {
  onlyOneStdin(words);
  const modules: TriedModule[] = [];
  for (const word of words) {
    const read = isLocal(word) ? await localModule(context, word) : await storedModule(context, word);
    modules.push(sound(context, read));
  }
  return modules;
}

/** Reports whether a word is a path rather than the name of a module on the orchestrator. */
export const isLocal = (word: string): boolean => isFile(word) || word === '.' || word === '..';

function sound(context: Context, { source, bytes, parsed }: ReadModule): TriedModule {
  const content = new TextDecoder().decode(bytes);
  if (!parsed.ok) throw faulty(context, source, content, parsed.faults);
  return { module: parsed.module, source, content };
}

async function localModule(context: Context, path: string): Promise<ReadModule> {
  const local = path === '-' ? null : await folderAt(path);
  if (local !== null) {
    const { bytes, folder } = local;
    return { source: join(path, moduleFileName), bytes, parsed: parseModule(bytes, folder) };
  }
  const { file, bytes } = await readSource(context, path);
  const alone = parseModule(bytes);
  // Reads the directory only if the module may need its files, because any directory may contain the file.
  if (alone.ok || basename(path) !== moduleFileName) return { source: file, bytes, parsed: alone };
  const beside = await readFolder(dirname(path)).catch((error: unknown) => {
    if (error instanceof CliError) return null;
    throw error;
  });
  return { source: file, bytes, parsed: beside === null ? alone : parseModule(bytes, beside.folder) };
}

async function storedModule(context: Context, name: string): Promise<ReadModule> {
  const { call } = await context.connect();
  const {
    content,
    revision,
    files = [],
  } = await call(getModule, { params: { name } }).catch((error: unknown) => suggestModule(call, name, error));
  const folder = await storedFolder(call, { name, content, revision, files });
  return { source: name, bytes: Buffer.from(content), parsed: parseModule(content, folder) };
}

/** Reads the template files of a stored module. */
async function storedFolder(
  call: Client,
  { name, content, revision, files }: { name: string; content: string; revision: number; files: readonly ModuleFile[] },
): Promise<ModuleFolder> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const texts = new Map<string, string>();
  let left: number = folderLimits.templatesBytes;
  for (const path of templateFilesOf(content, byPath)) {
    left -= byPath.get(path)?.size ?? 0;
    if (left < 0) break;
    const { body } = await call(getModuleFile, { params: { name }, query: { path, revision: String(revision) } });
    const pieces: Uint8Array[] = [];
    for await (const piece of body) pieces.push(piece);
    texts.set(path, Buffer.concat(pieces).toString('utf8'));
  }
  return { files: byPath, textOf: (path) => texts.get(path) ?? null };
}

/**
 * Adds the modules that others require, directly or indirectly, if they are found.
 * @param find reads a module by its name; returns null if it is not found
 */
export async function withRequiredModules(
  modules: readonly TriedModule[],
  find: (name: string) => Promise<TriedModule | null>,
): Promise<TriedModule[]> {
  const all = [...modules];
  const asked = new Set(modules.map(({ module }) => module.name));
  // `all` grows during the loop.
  for (const { module } of all)
    for (const { module: name } of module.requires) {
      if (asked.has(name)) continue;
      asked.add(name);
      const found = await find(name);
      if (found !== null) all.push(found);
    }
  return all;
}

/** Returns a function that reads a required module from the orchestrator. */
export const fromOrchestrator =
  (context: Context) =>
  async (name: string): Promise<TriedModule | null> =>
    sound(context, await storedModule(context, name));

/**
 * Returns a function that finds a required module among files by the name that it declares.
 * @param files returns the paths, which are read when the first module is requested
 */
export function fromFiles(context: Context, files: () => Promise<readonly string[]>) {
  let known: Promise<Map<string, string[]>> | null = null;
  const read = async () => {
    const paths = new Map<string, string[]>();
    for (const path of await files()) {
      const name = declaredName((await readSource(context, path)).bytes);
      if (name !== null) paths.set(name, [...(paths.get(name) ?? []), path]);
    }
    return paths;
  };
  return async (name: string): Promise<TriedModule | null> => {
    known ??= read();
    const [path, other] = (await known).get(name) ?? [];
    if (path === undefined) return null;
    if (other !== undefined)
      throw new CliError(
        exits.failed,
        'module_invalid',
        `the required module ${JSON.stringify(name)} is in ${path} and in ${other}`,
        'List its file under modules in the test file.',
      );
    return sound(context, await localModule(context, path));
  };
}
