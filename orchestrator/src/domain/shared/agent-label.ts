import { agentById } from '../../store/queries/agents.ts';
import type { Context } from './context.ts';

/** How people know an agent: its name, before it has one its first hostname, when it is gone its id. */
export async function agentLabel({ db }: Context, nodeId: string): Promise<string> {
  const row = await db.get(agentById, { node_id: nodeId });
  return row?.name ?? row?.initial_hostname ?? nodeId;
}
