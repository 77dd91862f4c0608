import { MusterError } from '@muster/protocol';
import { agentById, markCloneSeen } from '../../store/queries/agents/agents.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import type { Refusals } from '../audit/refusals.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import type { AgentLinks } from './agent-link.ts';

/** Records refused agents and copied agent keys in the audit log. */

/** A clone reconnects indefinitely, so one event per hour is enough. */
const cloneEventEverySecs = 3600;

/** Records that a second machine uses a connected agent's key. */
export async function recordClone(context: Context, nodeId: string, remoteIp: string): Promise<void> {
  const { db } = context;
  const now = seconds(context.now());
  const row = await db.get(agentById, { node_id: nodeId });
  const before = now - cloneEventEverySecs;
  if (!row || (row.clone_seen_at ?? 0) > before) return;
  const label = row.name ?? row.initial_hostname;
  try {
    await db.write({
      name: 'agents/cloned',
      statements: [
        statement(markCloneSeen, { node_id: nodeId, before, now }, { expect: 'changed', else: 'agent_changed' }),
        audited(context, {
          type: 'agent.cloned',
          actor: systemActor,
          target: { type: 'agent', id: nodeId, name: label },
          summary: `a second machine at ${remoteIp} uses the key of agent ${label}, which is connected from ${row.remote_ip ?? 'elsewhere'}`,
          metadata: { ip: remoteIp, connected_from: row.remote_ip },
        }),
      ],
    });
  } catch (error) {
    if (!(error instanceof MusterError && error.code === 'agent_changed')) throw error;
  }
}

export async function recordRefusedAgent(
  { db }: Context,
  refusals: Pick<Refusals, 'record'>,
  { code, message }: Parameters<AgentLinks['refused']>[0],
  from: Parameters<AgentLinks['refused']>[1],
): Promise<void> {
  const row = from.node_id === null ? undefined : await db.get(agentById, { node_id: from.node_id });
  await refusals.record({
    type: 'agent.refused',
    // Any client can create keys and prove that it owns them, so only recorded agents get separate entries.
    who: row ? 'agent' : 'unknown_agent',
    ...(row ? { target: { type: 'agent', id: row.node_id, name: row.name ?? row.initial_hostname } } : {}),
    summary: `an agent at ${from.remote_ip} was refused: ${message}`,
    code,
    ip: from.remote_ip,
    same: { of: row?.node_id ?? '', anywhere: row !== undefined },
  });
}
