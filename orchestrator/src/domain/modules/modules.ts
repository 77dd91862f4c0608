import { createHash } from 'node:crypto';
import { type Fault, MusterError } from '@muster/protocol';
import type { Module } from '@muster/protocol/http';
import {
  type ModuleDocument,
  moduleLimits,
  parseModule,
  pointer,
  positionIn,
  requirementFaults,
} from '@muster/protocol/module';
import { fromJson, toJson } from '../../store/json-text.ts';
import { assignmentsNaming } from '../../store/queries/assignments.ts';
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
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';

/** Stores each module revision exactly as uploaded. */

/** Lists all modules by name. */
export async function listModules({ db }: Context, request: PageRequest): Promise<Page<Module>> {
  const rows = await readPage(request, (page) => db.all(modules, page));
  return mapPage(rows, ({ name, uploaded_at, uploaded_by }) => ({ name, uploaded_at, uploaded_by }));
}

export function validateModule(content: string) {
  const parsed = parseModule(content);
  return { valid: parsed.ok, faults: parsed.ok ? [] : parsed.faults, warnings: parsed.ok ? parsed.warnings : [] };
}

/**
 * Stores a text as a module's next revision.
 * @throws MusterError module_invalid with all errors; invalid_input if the name differs from the name in the text
 */
export async function uploadModule(context: Context, actor: Actor, name: string, content: string): Promise<Module> {
  if (Buffer.byteLength(content) > moduleLimits.bytes)
    throw new MusterError('body_too_large', `a module can have at most ${moduleLimits.bytes} bytes`);
  const parsed = parseModule(content);
  if (!parsed.ok) throw invalid(parsed.faults);
  if (parsed.module.name !== name) {
    const message = `must be ${JSON.stringify(parsed.module.name)}, the name that the module declares`;
    throw new MusterError('invalid_input', `name ${message}`, [{ path: '/name', message }]);
  }
  const { db } = context;
  const { requires } = parsed.module;
  const uploaded_at = seconds(context.now());
  // If a concurrent upload takes this revision number, this upload uses the next one. If the required modules change,
  // they are checked again.
  for (let attempt = 0; ; attempt++) {
    const required = await requireFulfilled(context, parsed.module, content);
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
          statement(insertModuleRevision, {
            name,
            revision,
            content,
            digest: `sha256:${createHash('sha256').update(content).digest('hex')}`,
            uploaded_at,
            uploaded_by: actor.id,
          }),
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

/**
 * Checks that the modules that a module requires exist, accept its values, and do not require the module itself.
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
export async function getModule({ db }: Context, name: string, revision?: number) {
  const row = await db.get(moduleByName, { name });
  if (!row) throw unknown(name);
  const text = await db.get(moduleRevision, { name, revision: revision ?? row.revision });
  if (!text) throw new MusterError('module_not_found', `module ${name} has no revision ${revision}`);
  const { uploaded_at, uploaded_by, content } = text;
  const required_by = (await db.all(modulesRequiring, { module: name })).map((module) => module.name);
  const requires = text.revision === row.revision ? fromJson(row.requires) : requiredIn(content);
  return { name, uploaded_at, uploaded_by, content, revision: text.revision, requires, required_by };
}

/** Returns the modules that an older revision requires; none if it is not valid in this release. */
function requiredIn(content: string): string[] {
  const parsed = parseModule(content);
  return parsed.ok ? parsed.module.requires.map(({ module }) => module) : [];
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
      audited(context, {
        type: 'module.removed',
        actor,
        target: { type: 'module', id: name, name },
        summary: `module ${name} removed`,
      }),
    ],
  });
}
