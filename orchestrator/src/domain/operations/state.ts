import type { State } from '@muster/protocol/http';
import { type JsonText, toJson } from '../../store/json-text.ts';
import { agentState, appliedPage } from '../../store/queries/state.ts';
import { requireAgent } from '../agents/agents.ts';
import type { Context } from '../shared/context.ts';
import type { Applied } from './applied-state.ts';
import { pageBytes } from './operation-results.ts';

type StateEntry = State['applied'][number];
type EntryTexts = AsyncIterable<readonly JsonText<StateEntry>[]>;

/** Applied state whose entries are streamed. */
export type StateInPages = Omit<State, 'applied' | 'pending_removals' | 'unapplied'> & {
  applied: EntryTexts;
  pending_removals: EntryTexts;
  unapplied: EntryTexts;
};

/**
 * Reads an agent's applied state.
 * @throws MusterError agent_not_found
 */
export async function readState(context: Context, idOrName: string): Promise<StateInPages> {
  const { node_id, updated_at } = await requireAgent(context, idOrName);
  const state = await context.db.get(agentState, { node_id });
  return {
    node_id,
    applied: stateTexts(context, node_id, 'applied'),
    pending_removals: stateTexts(context, node_id, 'pending_removal'),
    unapplied: stateTexts(context, node_id, 'unapplied'),
    snapshot_operation_id: state?.snapshot_operation_id ?? null,
    updated_at: state?.updated_at ?? updated_at,
  };
}

async function* stateTexts(
  { db }: Context,
  node_id: string,
  state: Applied['state'],
): AsyncGenerator<JsonText<StateEntry>[]> {
  for (let after = { after_module: '', after_key: '' }; ; ) {
    const rows = await db.all(appliedPage, { node_id, state, ...after, bytes: pageBytes });
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map(({ module, resource_id, type, identity, operation_id, since, reason }) =>
      toJson({ module, id: resource_id, type, identity, operation_id, since, reason }),
    );
    after = { after_module: last.module, after_key: last.key };
  }
}
