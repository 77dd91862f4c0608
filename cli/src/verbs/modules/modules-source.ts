import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { ApiError, type Client } from '@muster/protocol/client';
import { getModule, listModules } from '@muster/protocol/http';
import { type ModuleDocument, moduleLimits, parseModule, requiresOf, withRequired } from '@muster/protocol/module';
import type { Context } from '../../context/context.ts';
import { CliError, exits, usageError } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';
import { folderAt } from './module-folder.ts';

/** Reads module files, and explains errors about stored modules. */

/** Reports whether a word refers to a file rather than a stored module. */
export const isFile = (word: string): boolean => word === '-' || word.includes('/') || /\.ya?ml$/.test(word);

interface Source {
  file: string;
  bytes: Uint8Array;
}

/**
 * Reads a module file, up to one byte over the maximum size of a module, so that the checks refuse a longer one.
 * @param file `-` for standard input, which is read to its end
 */
export async function readSource({ stdin }: Pick<Context, 'stdin'>, file: string): Promise<Source> {
  if (file === '-') return { file: '<stdin>', bytes: Buffer.from(await stdin()) };
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of createReadStream(file, { end: moduleLimits.bytes })) chunks.push(chunk);
    return { file, bytes: Buffer.concat(chunks) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a directory' : message;
    throw new CliError(
      exits.failed,
      'file_unreadable',
      `cannot read ${file}: ${why}`,
      'Specify a YAML file, or - for standard input.',
      { cause: error },
    );
  }
}

/**
 * Orders module files so that each module comes after the modules that it requires. Files with errors stay in place.
 */
export async function requiredFirst(files: readonly string[]): Promise<string[]> {
  if (files.length < 2) return [...files];
  const read = async (file: string): Promise<ModuleDocument | null> => {
    if (file === '-') return null;
    const local = await folderAt(file).catch(() => null);
    const bytes = local?.bytes ?? (await readSource({ stdin: async () => '' }, file).catch(() => null))?.bytes;
    const parsed = bytes === undefined ? null : parseModule(bytes, local?.folder);
    return parsed?.ok ? parsed.module : null;
  };
  const fileOf = new Map<string, string>();
  const documents: ModuleDocument[] = [];
  const names: string[] = [];
  for (const file of files) {
    const module = await read(file);
    // A path contains a slash, so it cannot be the name of a module.
    const name = module === null || fileOf.has(module.name) ? `/${file}` : module.name;
    if (module !== null && name === module.name) documents.push(module);
    fileOf.set(name, file);
    names.push(name);
  }
  return withRequired(names, requiresOf(documents)).flatMap((name) => fileOf.get(name) ?? []);
}

export function onlyOneStdin(files: readonly string[]): void {
  if (files.filter((file) => file === '-').length > 1) throw usageError('standard input (-) can be named only once');
}

/** Error codes for an unknown module in a URL path and in a request body. */
export const isMissing: ReadonlySet<string> = new Set(['module_not_found', 'unknown_module']);

/** Throws the error, with the most similar known name as a suggestion. */
export async function suggestModule(call: Client, moduleName: string, error: unknown): Promise<never> {
  if (!(error instanceof ApiError) || !isMissing.has(error.problem.code)) throw error;
  const near = nearest(
    moduleName,
    (await call(listModules, { all: true })).map(({ name }) => name),
  );
  const isFolder = (await stat(moduleName).catch(() => null))?.isDirectory() === true;
  const suggestion = near === null ? '' : `Did you mean ${near}? `;
  throw new CliError(
    exits.failed,
    error.problem.code,
    `there is no module ${JSON.stringify(moduleName)}`,
    isFolder
      ? `For the folder of this name, write ./${moduleName}`
      : `${suggestion}List the modules: muster modules list`,
    { cause: error },
  );
}

/**
 * Throws the error. If the module exists but the requested revision does not, adds the newest revision to the message.
 */
export async function missingModule(
  call: Client,
  name: string,
  revision: number | undefined,
  error: unknown,
): Promise<never> {
  if (revision === undefined || !(error instanceof ApiError) || error.problem.code !== 'module_not_found')
    return suggestModule(call, name, error);
  const newest = await call(getModule, { params: { name } }).catch((other: unknown) =>
    suggestModule(call, name, other),
  );
  throw new CliError(
    exits.failed,
    'module_not_found',
    `${name} has no revision ${revision}; its newest is ${newest.revision}`,
    null,
    { cause: error },
  );
}
