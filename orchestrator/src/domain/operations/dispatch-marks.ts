import { markOnlyDispatched } from '../../store/queries/operations/dispatch.ts';
import { appliedBefore } from '../../store/queries/operations/payloads.ts';
import { statement } from '../../store/transaction.ts';
import { type Context, seconds } from '../shared/context.ts';

/**
 * Marks an operation as dispatched if its agent is approved and has no other queued or running operation. Requests
 * within one event-loop turn share a write.
 * @returns the digest of the payload that was last applied on the machine, if known; null if the operation was not
 * marked and the rows must be read
 */
export type MarkOnly = (operationId: string) => Promise<{ applied: string | null } | null>;

type Marked = ReadonlyMap<string, { applied: string | null }>;

/** Maximum number of operations marked by one statement. */
const atOnce = 256;

export function createDispatchMarks(context: Pick<Context, 'db' | 'now' | 'incarnation'>): MarkOnly {
  let gathering: { ids: string[]; marked: Promise<Marked> } | null = null;

  const mark = async (ids: readonly string[]): Promise<Marked> => {
    const { incarnation } = context;
    const marks = statement(markOnlyDispatched, { operation_ids: ids, now: seconds(context.now()), incarnation });
    const before = statement(appliedBefore, { operation_ids: ids });
    const result = await context.db.write({ name: 'operations/dispatch', statements: [marks, before] });
    const applied = new Map(result.of(before).rows.map((row) => [row.operation_id, row.payload_digest]));
    return new Map(
      result.of(marks).rows.map(({ operation_id }) => [operation_id, { applied: applied.get(operation_id) ?? null }]),
    );
  };

  return async (operationId) => {
    if (gathering === null || gathering.ids.length >= atOnce) {
      const ids: string[] = [];
      // Runs in a later microtask, because the dispatcher requests marks for many agents before it yields.
      const marked = Promise.resolve().then(() => {
        if (gathering?.ids === ids) gathering = null;
        return mark(ids);
      });
      gathering = { ids, marked };
    }
    const { ids, marked } = gathering;
    ids.push(operationId);
    return (await marked).get(operationId) ?? null;
  };
}
