import { agentById } from '../../store/queries/agents/agents.ts';
import type { Context } from './context.ts';

/**
 * Returns the label that identifies an agent to operators: its name, its first hostname if it has no name, or its id
 * if it has no record.
 */
export async function agentLabel({ db }: Context, nodeId: string): Promise<string> {
  const row = await db.get(agentById, { node_id: nodeId });
  return row?.name ?? row?.initial_hostname ?? nodeId;
}
