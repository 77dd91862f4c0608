import { type Fault, MusterError } from '@muster/protocol';
import type { Assignment } from '@muster/protocol/http';
import { givenFaults, pointer } from '@muster/protocol/module';
import { fromJson, toJson } from '../../store/json-text.ts';
import {
  assignmentByName,
  assignmentPage,
  assignments,
  deleteAssignment,
  insertAssignment,
  updateAssignmentFields,
} from '../../store/queries/assignments.ts';
import { deleteDriftScope } from '../../store/queries/drift-states.ts';
import { moduleByName, modulesByName } from '../../store/queries/modules.ts';
import { statement } from '../../store/transaction.ts';
import { approvedMatching, requireSelector } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { auditScope } from '../shared/drift-scope.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';

/** Assignments bind modules to the agents that match a selector. */

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, name: string) => db.get(assignmentByName, { name });

const toAssignment = (row: Row): Assignment => ({
  name: row.name,
  modules: fromJson(row.modules),
  selector: row.selector,
  description: row.description,
  mode: row.mode,
  window_only: row.window_only === 1,
  parameters: fromJson(row.parameters) as Assignment['parameters'],
  precedence: row.precedence,
  created_at: row.created_at,
  created_by: row.created_by,
});

/** Lists all assignments by name. Their order is their precedence. */
export async function listAssignments({ db }: Context): Promise<Assignment[]> {
  return (await db.all(assignments, {})).map(toAssignment);
}

export async function listAssignmentPage({ db }: Context, request: PageRequest): Promise<Page<Assignment>> {
  return mapPage(await readPage(request, (page) => db.all(assignmentPage, page)), toAssignment);
}

export async function requireAssignment(context: Context, name: string): Promise<Assignment> {
  const row = await findRow(context, name);
  if (!row)
    throw new MusterError('assignment_not_found', `there is no assignment ${JSON.stringify(name.slice(0, 128))}`);
  return toAssignment(row);
}

export async function getAssignment(context: Context, name: string) {
  const assignment = await requireAssignment(context, name);
  const matching = await approvedMatching(context, requireSelector(assignment.selector, '/selector'));
  return { ...assignment, matches: matching.map(({ node_id }) => node_id) };
}

export interface NewAssignment {
  name: string;
  modules: string[];
  selector: string;
  description?: string | undefined;
  mode?: 'enforce' | 'audit' | undefined;
  window_only?: boolean | undefined;
  parameters?: Assignment['parameters'] | undefined;
  precedence?: number | undefined;
}

/** Returns the errors in parameter values that do not match the modules' declarations. */
async function parameterFaults(context: Context, parameters: Assignment['parameters']): Promise<Fault[]> {
  const given = Object.entries(parameters);
  const modules = await context.documents.load(given.map(([module]) => module));
  return given.flatMap(([module, values], i) =>
    givenFaults(modules[i]?.parameters ?? {}, values).map(({ path, message }) => ({
      path: pointer(['parameters', module, ...path]),
      message: `module ${JSON.stringify(module)}: ${message}`,
    })),
  );
}

/**
 * Checks the selector, modules, and parameters of an assignment.
 * @throws MusterError invalid_input, selector_invalid, unknown_module
 */
async function requireFitting(
  context: Context,
  requested: Pick<NewAssignment, 'modules' | 'selector' | 'parameters'>,
  faults: Fault[] = [],
): Promise<void> {
  for (const [i, name] of requested.modules.entries())
    if (requested.modules.indexOf(name) !== i)
      faults.push({ path: `/modules/${i}`, message: `module ${name} is listed twice` });
  for (const module of Object.keys(requested.parameters ?? {}))
    if (!requested.modules.includes(module))
      faults.push({ path: `/parameters/${module}`, message: `${module} is not a module of this assignment` });
  if (faults.length > 0) throw new MusterError('invalid_input', faults[0]?.message, faults);
  requireSelector(requested.selector, '/selector');
  const known = new Set((await context.db.all(modulesByName, { names: requested.modules })).map(({ name }) => name));
  const missing = requested.modules.flatMap((name, i) =>
    known.has(name) ? [] : [{ path: `/modules/${i}`, message: `there is no module ${JSON.stringify(name)}` }],
  );
  if (missing.length > 0) throw new MusterError('unknown_module', missing[0]?.message, missing);
  const unfit = await parameterFaults(context, requested.parameters ?? {});
  if (unfit.length > 0) throw new MusterError('invalid_input', unfit[0]?.message, unfit);
}

/**
 * Creates an assignment.
 * @throws MusterError invalid_input, selector_invalid, unknown_module, name_taken
 */
export async function createAssignment(context: Context, actor: Actor, requested: NewAssignment): Promise<Assignment> {
  const { db } = context;
  const faults: Fault[] = [];
  if (/[/\p{Cc}]/u.test(requested.name) || /^\.{1,2}$/.test(requested.name) || requested.name.trim() !== requested.name)
    faults.push({
      path: '/name',
      message: 'must not contain a slash or control characters, begin or end with a space, or be "." or ".."',
    });
  await requireFitting(context, requested, faults);
  await db.write({
    name: 'assignments/create',
    statements: [
      statement(
        assignmentByName,
        { name: requested.name },
        { expect: 'no_row', else: 'name_taken', detail: `an assignment named ${requested.name} already exists` },
      ),
      ...requested.modules.map((name) => statement(moduleByName, { name }, { expect: 'row', else: 'unknown_module' })),
      statement(insertAssignment, {
        name: requested.name,
        modules: toJson(requested.modules),
        selector: requested.selector,
        description: requested.description ?? null,
        mode: requested.mode ?? 'enforce',
        window_only: requested.window_only ?? false,
        parameters: toJson(requested.parameters ?? {}),
        precedence: requested.precedence ?? 0,
        created_at: seconds(context.now()),
        created_by: actor.id,
      }),
      audited(context, {
        type: 'assignment.created',
        actor,
        target: { type: 'assignment', id: requested.name, name: requested.name },
        summary: `assignment ${requested.name} created`,
        metadata: { modules: requested.modules, selector: requested.selector, mode: requested.mode ?? 'enforce' },
      }),
    ],
  });
  return requireAssignment(context, requested.name);
}

/** Changes to an assignment. Absent fields do not change. */
export type AssignmentChange = { [K in keyof Omit<NewAssignment, 'name'>]?: NewAssignment[K] | undefined };

/**
 * Changes an assignment.
 * @throws MusterError invalid_input, assignment_not_found, selector_invalid, unknown_module, assignment_changed
 */
export async function updateAssignment(
  context: Context,
  actor: Actor,
  name: string,
  change: AssignmentChange,
): Promise<Assignment> {
  const { db } = context;
  const before = await requireAssignment(context, name);
  const { modules = before.modules, selector = before.selector, parameters = before.parameters } = change;
  const mode = change.mode ?? before.mode;
  const description = change.description === undefined ? before.description : change.description || null;
  const window_only = change.window_only ?? before.window_only;
  const precedence = change.precedence ?? before.precedence;
  const after: Assignment = { ...before, modules, selector, parameters, mode, description, window_only, precedence };
  const changed = (
    ['modules', 'selector', 'description', 'mode', 'window_only', 'parameters', 'precedence'] as const
  ).filter((field) => toJson(after[field]) !== toJson(before[field]));
  await requireFitting(context, after);
  if (changed.length === 0) return before;
  await db.write({
    name: 'assignments/update',
    statements: [
      ...modules.map((module) => statement(moduleByName, { name: module }, { expect: 'row', else: 'unknown_module' })),
      // The fields depend on each other, so a concurrent change to any field makes the update fail.
      statement(
        updateAssignmentFields(Object.fromEntries(changed.map((field) => [field, true]))),
        {
          name,
          former_modules: toJson(before.modules),
          former_parameters: toJson(before.parameters),
          modules: toJson(modules),
          selector,
          description,
          mode,
          window_only,
          parameters: toJson(parameters),
          precedence,
        },
        { expect: 'changed', else: 'assignment_changed' },
      ),
      // Agents that no longer match and modules that were removed no longer count as drifted from this assignment.
      ...(changed.includes('selector') ||
      changed.includes('mode') ||
      before.modules.some((one) => !modules.includes(one))
        ? [statement(deleteDriftScope, { scope: auditScope(name) })]
        : []),
      audited(context, {
        type: 'assignment.updated',
        actor,
        target: { type: 'assignment', id: name, name },
        summary: `assignment ${name} changed: ${changed.join(', ')}`,
        metadata: { changed, modules, selector, mode },
      }),
    ],
  });
  return after;
}

export async function removeAssignment(context: Context, actor: Actor, name: string): Promise<void> {
  await context.db.write({
    name: 'assignments/remove',
    statements: [
      statement(deleteAssignment, { name }, { expect: 'changed', else: 'assignment_not_found' }),
      statement(deleteDriftScope, { scope: auditScope(name) }),
      audited(context, {
        type: 'assignment.removed',
        actor,
        target: { type: 'assignment', id: name, name },
        summary: `assignment ${name} removed`,
      }),
    ],
  });
}
