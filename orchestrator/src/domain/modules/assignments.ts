import { type Fault, MusterError } from '@muster/protocol';
import type { Assignment } from '@muster/protocol/http';
import { moduleValueFaults, pointer } from '@muster/protocol/module';
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

/**
 * Assignments bind modules to the agents that match a selector. An assignment without modules only sets parameters of
 * modules that other assignments bind.
 */

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

/** Lists all assignments by name, which is also the order of their modules. */
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
  /** Empty if the assignment only sets parameters. */
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
    moduleValueFaults(modules[i] ?? { parameters: {}, require: [] }, values).map(({ path, message }) => ({
      path: pointer(['parameters', module, ...path]),
      message: `module ${JSON.stringify(module)}: ${message}`,
    })),
  );
}

type Checked = Pick<Assignment, 'modules' | 'selector' | 'parameters' | 'mode' | 'window_only'>;

/**
 * Maximum number of modules whose parameters an assignment without modules sets. The route has the same limit for
 * modules.
 */
const maximumModules = 256;

/**
 * Checks which modules an assignment specifies. An assignment without modules must set parameters, and nothing else.
 * Returns the errors.
 */
function moduleFaults({ modules, parameters, mode, window_only }: Checked): Fault[] {
  const given = Object.keys(parameters);
  if (modules.length > 0)
    return [
      ...modules.flatMap((name, i) =>
        modules.indexOf(name) === i ? [] : [{ path: `/modules/${i}`, message: `module ${name} is listed twice` }],
      ),
      ...given
        .filter((name) => !modules.includes(name))
        .map((name) => ({
          path: pointer(['parameters', name]),
          message: `${name} is not a module of this assignment: add it to the modules, or give it values in an assignment without modules`,
        })),
    ];
  const faults: Fault[] = [];
  if (given.length > maximumModules)
    faults.push({ path: '/parameters', message: `must name at most ${maximumModules} modules` });
  if (!given.some((name) => Object.keys(parameters[name] ?? {}).length > 0))
    faults.push({ path: '/modules', message: 'must name a module, unless the assignment sets parameters' });
  if (mode === 'audit')
    faults.push({
      path: '/mode',
      message: 'an assignment without modules has nothing to audit: add modules, or use enforce',
    });
  if (window_only)
    faults.push({
      path: '/window_only',
      message: 'an assignment without modules applies nothing by itself: add modules, or leave this out',
    });
  return faults;
}

/** Returns the modules that an assignment assigns or whose parameters it sets, with the path of each. */
const namedModules = ({ modules, parameters }: Pick<Checked, 'modules' | 'parameters'>) =>
  modules.length > 0
    ? modules.map((name, i) => ({ name, path: `/modules/${i}` }))
    : Object.keys(parameters).map((name) => ({ name, path: pointer(['parameters', name]) }));

/**
 * Checks the selector, modules, and parameters of an assignment.
 * @throws MusterError invalid_input, selector_invalid, unknown_module
 */
async function requireFitting(context: Context, requested: Checked, faults: Fault[] = []): Promise<void> {
  faults.push(...moduleFaults(requested));
  if (faults.length > 0) throw new MusterError('invalid_input', faults[0]?.message, faults);
  requireSelector(requested.selector, '/selector');
  const named = namedModules(requested);
  const names = named.map(({ name }) => name);
  const known = new Set((await context.db.all(modulesByName, { names })).map(({ name }) => name));
  const missing = named.flatMap(({ name, path }) =>
    known.has(name) ? [] : [{ path, message: `there is no module ${JSON.stringify(name)}` }],
  );
  if (missing.length > 0) throw new MusterError('unknown_module', missing[0]?.message, missing);
  const unfit = await parameterFaults(context, requested.parameters);
  if (unfit.length > 0) throw new MusterError('invalid_input', unfit[0]?.message, unfit);
}

/** Statements that fail if a module in the assignment was removed. */
const modulesExist = (requested: Pick<Checked, 'modules' | 'parameters'>) =>
  namedModules(requested).map(({ name }) =>
    statement(moduleByName, { name }, { expect: 'row', else: 'unknown_module' }),
  );

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
  const { name, modules, selector, mode = 'enforce', window_only = false, parameters = {} } = requested;
  await requireFitting(context, { modules, selector, mode, window_only, parameters }, faults);
  await db.write({
    name: 'assignments/create',
    statements: [
      statement(
        assignmentByName,
        { name },
        { expect: 'no_row', else: 'name_taken', detail: `an assignment named ${name} already exists` },
      ),
      ...modulesExist({ modules, parameters }),
      statement(insertAssignment, {
        name,
        modules: toJson(modules),
        selector,
        description: requested.description ?? null,
        mode,
        window_only,
        parameters: toJson(parameters),
        precedence: requested.precedence ?? 0,
        created_at: seconds(context.now()),
        created_by: actor.id,
      }),
      audited(context, {
        type: 'assignment.created',
        actor,
        target: { type: 'assignment', id: name, name },
        summary: `assignment ${name} created`,
        metadata: { modules, selector, mode },
      }),
    ],
  });
  return requireAssignment(context, name);
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
      ...modulesExist({ modules, parameters }),
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
