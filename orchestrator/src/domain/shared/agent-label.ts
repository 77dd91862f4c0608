import { agentById } from '../../store/queries/agents/agents.ts';
import type { Context } from './context.ts';

/** Returns the displayed label of an agent: its name, otherwise its first hostname, otherwise its id. */
export async function agentLabel({ db }: Context, nodeId: string): Promise<string> {
  const row = await db.get(agentById, { node_id: nodeId });
  return row?.name ?? row?.initial_hostname ?? nodeId;
}
