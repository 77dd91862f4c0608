import type { JsonText } from '../json-text.ts';
import { defineQuery, defineVariants } from '../query.ts';

export const assignments = defineQuery('assignments/list', (db) =>
  db.selectFrom('assignments').selectAll().orderBy('name'),
);

export const assignmentPage = defineQuery('assignments/page', (db, p: { limit: number; offset: number }) =>
  db.selectFrom('assignments').selectAll().orderBy('name').limit(p.limit).offset(p.offset),
);

export const assignmentByName = defineQuery('assignments/by name', (db, p: { name: string }) =>
  db.selectFrom('assignments').selectAll().where('name', '=', p.name),
);

/** For preconditions: returns a row if the assignment is in audit mode and still has this selector. */
export const assignmentAuditing = defineQuery('assignments/auditing', (db, p: { name: string; selector: string }) =>
  db
    .selectFrom('assignments')
    .select('name')
    .where('name', '=', p.name)
    .where('mode', '=', 'audit')
    .where('selector', '=', p.selector),
);

/** Assignments that assign the module or set its parameters. */
export const assignmentsNaming = defineQuery('assignments/naming module', (db, p: { module: string }, d) =>
  db
    .selectFrom('assignments')
    .select('name')
    .where((eb) => eb.or([d.jsonArrayHas('modules', p.module), d.jsonObjectHas('parameters', p.module)]))
    .orderBy('name')
    .limit(20),
);

type AssignmentField = 'modules' | 'selector' | 'description' | 'mode' | 'window_only' | 'parameters' | 'precedence';

/**
 * Sets only the fields of the variant, so that concurrent changes to different fields do not overwrite each other.
 * Changes nothing if the modules or their parameters have changed since they were read, because the two must match.
 */
export const updateAssignmentFields = defineVariants(
  'assignments/update',
  (
    db,
    p: {
      name: string;
      former_modules: JsonText<string[]>;
      former_parameters: JsonText<Record<string, Record<string, unknown>>>;
      modules: JsonText<string[]>;
      selector: string;
      description: string | null;
      mode: 'enforce' | 'audit';
      window_only: boolean;
      parameters: JsonText<Record<string, Record<string, unknown>>>;
      precedence: number;
    },
    _d,
    v: { [K in AssignmentField]?: boolean },
  ) =>
    db
      .updateTable('assignments')
      .set({
        ...(v.modules ? { modules: p.modules } : {}),
        ...(v.selector ? { selector: p.selector } : {}),
        ...(v.description ? { description: p.description } : {}),
        ...(v.mode ? { mode: p.mode } : {}),
        ...(v.window_only ? { window_only: p.window_only } : {}),
        ...(v.parameters ? { parameters: p.parameters } : {}),
        ...(v.precedence ? { precedence: p.precedence } : {}),
      })
      .where('name', '=', p.name)
      .where('modules', '=', p.former_modules)
      .where('parameters', '=', p.former_parameters),
);

export const insertAssignment = defineQuery(
  'assignments/insert',
  (
    db,
    p: {
      name: string;
      modules: JsonText<string[]>;
      selector: string;
      description: string | null;
      mode: 'enforce' | 'audit';
      window_only: boolean;
      parameters: JsonText<Record<string, Record<string, unknown>>>;
      precedence: number;
      created_at: number;
      created_by: string;
    },
  ) =>
    db.insertInto('assignments').values({
      name: p.name,
      modules: p.modules,
      selector: p.selector,
      description: p.description,
      mode: p.mode,
      window_only: p.window_only,
      parameters: p.parameters,
      precedence: p.precedence,
      created_at: p.created_at,
      created_by: p.created_by,
    }),
);

export const deleteAssignment = defineQuery('assignments/delete', (db, p: { name: string }) =>
  db.deleteFrom('assignments').where('name', '=', p.name),
);
