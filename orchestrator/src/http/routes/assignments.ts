import {
  createAssignment,
  getAssignment,
  listAssignmentPage,
  removeAssignment,
  updateAssignment,
} from '../../domain/modules/assignments.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function assignmentHandlers(context: Context) {
  return {
    listAssignments: async ({ query }) => paged(await listAssignmentPage(context, query), query),
    createAssignment: ({ body, session }) => createAssignment(context, actorIn(session), body),
    getAssignment: ({ params }) => getAssignment(context, params.name),
    updateAssignment: ({ params, body, session }) => updateAssignment(context, actorIn(session), params.name, body),
    removeAssignment: ({ params, session }) => removeAssignment(context, actorIn(session), params.name),
  } satisfies Partial<Handlers>;
}
