import { createHash } from 'node:crypto';
import { type Fault, MusterError } from '@muster/protocol';
import type { Module } from '@muster/protocol/http';
import {
  declaredName,
  type ModuleDocument,
  type ModuleFiles,
  type ModuleFolder,
  moduleLimits,
  parseModule,
  pointer,
  positionIn,
  requirementFaults,
} from '@muster/protocol/module';
import { fromJson, toJson } from '../../store/json-text.ts';
import { jsonRows } from '../../store/params.ts';
import { assignmentsNaming } from '../../store/queries/assignments.ts';
import { fileWithoutContent, insertModuleFiles } from '../../store/queries/contents.ts';
import {
  deleteModule,
  insertModuleRevision,
  lastRevision,
  moduleAtRevision,
  moduleByName,
  moduleRevision,
  moduleRevisions,
  modules,
  modulesRequiring,
  putModule,
} from '../../store/queries/modules.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { filesOfRevision, folderOf, type WrittenContent } from '../shared/module-files.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';
import { contentBytes, dropUnused, keepContents } from './contents.ts';
import { readArchive, type UnpackedFolder } from './module-folder.ts';

/** Stores each module revision exactly as uploaded. */

/** Lists all modules by name. */
export async function listModules({ db }: Context, request: PageRequest): Promise<Page<Module>> {
  const rows = await readPage(request, (page) => db.all(modules, page));
  return mapPage(rows, ({ name, uploaded_at, uploaded_by }) => ({ name, uploaded_at, uploaded_by }));
}

/**
 * Checks a module without storing it. Uses the files of a stored revision with the same module name.
 * @param filesOf undefined for the newest revision
 */
export async function validateModule(context: Context, content: string, filesOf?: number) {
  const parsed = parseModule(content, await keptFolder(context, declaredName(content), content, filesOf));
  return { valid: parsed.ok, faults: parsed.ok ? [] : parsed.faults, warnings: parsed.ok ? parsed.warnings : [] };
}

/** A module that is not stored. */
export interface DraftModule {
  readonly document: ModuleDocument;
  readonly digest: string;
}

/**
 * Reads a module without storing it. Uses the files of a stored revision with the same module name.
 * @param filesOf undefined for the newest revision
 * @throws MusterError module_invalid with all errors
 */
export async function readDraft(context: Context, content: string, filesOf?: number): Promise<DraftModule> {
  requireSize(content);
  const folder = await keptFolder(context, declaredName(content), content, filesOf);
  const document = parsedModule(content, folder);
  await requireFulfilled(context, document, content);
  return { document, digest: digestOf(content, folder.files) };
}

function requireSize(content: string): void {
  if (Buffer.byteLength(content) > moduleLimits.bytes)
    throw new MusterError('body_too_large', `a module can have at most ${moduleLimits.bytes} bytes`);
}

/** Returns a module's folder with new module text and the files of an earlier revision. */
async function keptFolder(
  context: Context,
  name: string | null,
  content: string,
  filesOf: number | undefined,
): Promise<ModuleFolder> {
  if (name === null) return folderOf(context, content, new Map());
  if (filesOf !== undefined && !(await context.db.get(moduleRevision, { name, revision: filesOf })))
    throw new MusterError('module_not_found', `module ${JSON.stringify(name)} has no revision ${filesOf}`);
  const revision = filesOf ?? (await context.db.get(moduleByName, { name }))?.revision;
  const files = revision === undefined ? new Map() : await filesOfRevision(context, name, revision);
  return folderOf(context, content, files);
}

/**
 * Stores module text as the module's next revision, which keeps the files of an earlier revision.
 * @param filesOf undefined for the newest revision
 * @throws MusterError module_invalid with all errors; invalid_input if the name differs from the name in the text
 */
export async function uploadModule(
  context: Context,
  actor: Actor,
  name: string,
  content: string,
  filesOf?: number,
): Promise<Module> {
  requireSize(content);
  const folder = await keptFolder(context, name, content, filesOf);
  const module = parsedModule(content, folder);
  if (module.name !== name) {
    const message = `must be ${JSON.stringify(module.name)}, the name that the module declares`;
    throw new MusterError('invalid_input', `name ${message}`, [{ path: '/name', message }]);
  }
  return storeRevision(context, actor, module, { content, files: folder.files, written: [] });
}

/**
 * Stores the archive of a folder as a module's next revision. If the archive is refused, no part of it remains.
 * @param requireSpace throws if the disk is low on free space
 * @throws MusterError module_invalid with all errors
 */
export async function uploadFolder(
  context: Context,
  actor: Actor,
  archive: AsyncIterable<Uint8Array>,
  requireSpace: () => void,
): Promise<Module> {
  const written: WrittenContent[] = [];
  try {
    const unpacked = await readArchive(context, archive, written, requireSpace);
    const { content, files } = unpacked;
    const module = parsedModule(content, await folderOf(context, content, files, written));
    return await storeRevision(context, actor, module, unpacked);
  } finally {
    // Deletes pieces whose contents were already stored, or whose archive was refused.
    await dropUnused(context, written).catch((error: unknown) =>
      context.log.warn({ err: error }, 'failed to delete pieces of an upload; will retry later'),
    );
  }
}

/** @throws MusterError module_invalid with all errors */
function parsedModule(content: string, folder: ModuleFolder): ModuleDocument {
  const parsed = parseModule(content, folder);
  if (parsed.ok) return parsed.module;
  throw invalid(parsed.faults);
}

/** Returns the digest of a revision: of its text, and of its files if it has any. */
function digestOf(content: string, files: ModuleFiles): string {
  const hash = createHash('sha256').update(content);
  const sorted = [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const { path, sha256, executable } of sorted) hash.update(`\0${path}\0${sha256}\0${executable}`);
  return `sha256:${hash.digest('hex')}`;
}

async function storeRevision(
  context: Context,
  actor: Actor,
  module: ModuleDocument,
  { content, files, written }: UnpackedFolder,
): Promise<Module> {
  const { db } = context;
  const { name, requires } = module;
  const uploaded_at = seconds(context.now());
  const digest = digestOf(content, files);
  // If a concurrent upload takes this revision number, this upload uses the next number. If the required modules
  // change, they are checked again.
  for (let attempt = 0; ; attempt++) {
    const required = await requireFulfilled(context, module, content);
    const revision = ((await db.get(lastRevision, { name }))?.revision ?? 0) + 1;
    try {
      await db.write({
        name: 'modules/upload',
        statements: [
          statement(moduleRevision, { name, revision }, { expect: 'no_row', else: 'name_taken' }),
          ...[...required].map((module) => statement(moduleAtRevision, module, { expect: 'row', else: 'name_taken' })),
          statement(
            putModule,
            {
              name,
              revision,
              uploaded_at,
              uploaded_by: actor.id,
              requires: toJson(requires.map(({ module }) => module)),
            },
            { expect: 'changed', else: 'name_taken' },
          ),
          statement(insertModuleRevision, { name, revision, content, digest, uploaded_at, uploaded_by: actor.id }),
          ...fileStatements(name, revision, files, written),
          audited(context, {
            type: 'module.uploaded',
            actor,
            target: { type: 'module', id: name, name },
            summary: `module ${name} uploaded as revision ${revision}`,
            metadata: { revision },
          }),
        ],
      });
      return { name, uploaded_at, uploaded_by: actor.id };
    } catch (error) {
      if (!(error instanceof MusterError && error.code === 'name_taken' && attempt < 200)) throw error;
    }
  }
}

function fileStatements(
  name: string,
  revision: number,
  files: ModuleFiles,
  written: readonly WrittenContent[],
): Statement[] {
  if (files.size === 0) return [];
  const rows = [...files.values()].map(({ path, sha256, size, executable }) => {
    return { name, revision, path, sha256, size, executable };
  });
  return [
    keepContents(written),
    statement(insertModuleFiles, { rows: jsonRows(rows) }),
    statement(fileWithoutContent, { name, revision }, { expect: 'no_row', else: 'storage_unavailable' }),
  ];
}

/**
 * Checks that all required modules exist, accept the values that the module sets, and do not require the module itself.
 * @returns all of them, directly required or not, with the revisions that were checked
 * @throws MusterError module_invalid
 */
async function requireFulfilled(
  { documents }: Context,
  module: ModuleDocument,
  content: string,
): Promise<{ name: string; revision: number }[]> {
  const { requires } = module;
  if (requires.length === 0) return [];
  const names = requires.map((each) => each.module);
  const { revisions, requires: edges } = await documents.newest(names);
  const faults: Fault[] = [];
  const fault = (path: readonly (string | number)[], message: string): void => {
    faults.push({ path: pointer(path), message, ...positionIn(content, path) });
  };
  for (const [index, required] of names.entries())
    if (!revisions.has(required))
      fault(['requires', index, 'module'], `there is no module ${JSON.stringify(required)}: upload it first`);
  if (faults.length === 0) {
    const loaded = await documents.load(names, revisions);
    for (const { path, message } of requirementFaults(module, edges, (name) => loaded[names.indexOf(name)]))
      fault(path, message);
  }
  if (faults.length > 0) throw invalid(faults);
  return [...revisions].map(([name, revision]) => ({ name, revision }));
}

function invalid(faults: readonly Fault[]): MusterError {
  const [first] = faults;
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
  const at = first?.line === undefined ? '' : `line ${first.line}: `;
  return new MusterError('module_invalid', `${at}${first?.message ?? 'not a module'}${more}`, faults);
}

const unknown = (name: string) =>
  new MusterError('module_not_found', `there is no module ${JSON.stringify(name.slice(0, 128))}`);

/**
 * Returns a module revision.
 * @param revision undefined for the newest revision
 */
export async function getModule(context: Pick<Context, 'db'>, name: string, revision?: number) {
  const { db } = context;
  const row = await db.get(moduleByName, { name });
  if (!row) throw unknown(name);
  const text = await db.get(moduleRevision, { name, revision: revision ?? row.revision });
  if (!text) throw new MusterError('module_not_found', `module ${name} has no revision ${revision}`);
  const { uploaded_at, uploaded_by, content } = text;
  const required_by = (await db.all(modulesRequiring, { module: name })).map((module) => module.name);
  const folder = await filesOfRevision(context, name, text.revision);
  const files = [...folder.values()];
  const requires = text.revision === row.revision ? fromJson(row.requires) : await requiredIn(context, content, folder);
  const shown = { name, uploaded_at, uploaded_by, content, revision: text.revision, requires, required_by };
  return { ...shown, ...(files.length === 0 ? {} : { files }) };
}

/** Returns the modules that an older revision requires; none if it is not valid in this release. */
async function requiredIn(context: Pick<Context, 'db'>, content: string, files: ModuleFiles): Promise<string[]> {
  const parsed = parseModule(content, await folderOf(context, content, files));
  return parsed.ok ? parsed.module.requires.map(({ module }) => module) : [];
}

/**
 * Returns the bytes of a file in a module's folder.
 * @param revision undefined for the newest revision
 */
export async function getModuleFile(
  context: Context,
  name: string,
  path: string,
  revision?: number,
): Promise<AsyncIterable<Uint8Array>> {
  const module = await getModule(context, name, revision);
  const file = module.files?.find((each) => each.path === path);
  if (file === undefined)
    throw new MusterError(
      'module_file_not_found',
      `revision ${module.revision} of module ${name} has no file ${JSON.stringify(path.slice(0, 128))}`,
    );
  return contentBytes(context, file);
}

/** Lists a module's revisions, newest first. */
export async function listRevisions({ db }: Context, name: string, request: PageRequest) {
  if (!(await db.get(moduleByName, { name }))) throw unknown(name);
  return readPage(request, (page) => db.all(moduleRevisions, { name, ...page }));
}

export async function removeModule(context: Context, actor: Actor, name: string): Promise<void> {
  const naming = await context.db.all(assignmentsNaming, { module: name });
  if (naming.length > 0)
    throw new MusterError(
      'module_in_use',
      `the module is used by assignments: ${naming.map((row) => row.name).join(', ')}`,
    );
  const requiring = await context.db.all(modulesRequiring, { module: name });
  if (requiring.length > 0)
    throw new MusterError(
      'module_in_use',
      `the module is required by modules: ${requiring.map((row) => row.name).join(', ')}`,
    );
  await context.db.write({
    name: 'modules/remove',
    statements: [
      statement(assignmentsNaming, { module: name }, { expect: 'no_row', else: 'module_in_use' }),
      statement(modulesRequiring, { module: name }, { expect: 'no_row', else: 'module_in_use' }),
      statement(
        deleteModule,
        { name },
        {
          expect: 'changed',
          else: 'module_not_found',
          detail: `there is no module ${JSON.stringify(name.slice(0, 128))}`,
        },
      ),
      // Runs and operations may still need its files, so they are deleted later.
      audited(context, {
        type: 'module.removed',
        actor,
        target: { type: 'module', id: name, name },
        summary: `module ${name} removed`,
      }),
    ],
  });
}
