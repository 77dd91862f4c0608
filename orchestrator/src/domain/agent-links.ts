import { MusterError } from '@muster/protocol';
import { agentById, markLastSeen, setAttributes } from '../store/agents.ts';
import { fromJson, toJson } from '../store/json-text.ts';
import { agentsWithWork } from '../store/operations.ts';
import { statement } from '../store/unit.ts';
import { createAdmission } from './agent-admission.ts';
import { agentLabel } from './agent-label.ts';
import type { AgentLinks } from './agent-link.ts';
import { reported } from './agent-reports.ts';
import { audited, type Happening } from './audit.ts';
import { cancellationsFor } from './cancellation.ts';
import { type Context, seconds, systemActor } from './context.ts';
import { nextOperation } from './dispatch.ts';
import { driftCheckOpen, submitDriftCheck } from './drift.ts';
import { createInFlight } from './in-flight.ts';
import { createPayloads } from './payloads.ts';

/** What the gateway asks of the domain, answered from the database. */
export function createAgentLinks(context: Context, pendingCapacity: number): AgentLinks {
  const { db } = context;
  const inFlight = createInFlight(context.bus);
  const payloads = createPayloads(context);
  const record = (name: string, happening: Happening) =>
    db.write({ name, statements: [audited(context, happening)] }).then(() => undefined);
  const asTarget = async (nodeId: string) => ({ type: 'agent', id: nodeId, name: await agentLabel(context, nodeId) });

  return {
    admit: createAdmission(context, pendingCapacity),

    async attributesChanged(nodeId, attributes) {
      const set = { node_id: nodeId, attributes: toJson(attributes), now: seconds(context.now()) };
      await db.write({ name: 'agents/attributes', statements: [statement(setAttributes, set)] });
    },

    reported: (nodeId, instanceId, seq, reports) => reported(context, inFlight, nodeId, instanceId, seq, reports),

    nextOperation: (nodeId) => nextOperation(context, inFlight, payloads, nodeId),

    cancellations: (nodeId) => cancellationsFor(context, nodeId),

    async agentsWithWork() {
      return (await db.all(agentsWithWork, {})).map(({ node_id }) => node_id);
    },

    async standing(nodeId) {
      const row = await db.get(agentById, { node_id: nodeId });
      return row ? { status: row.status, name: row.name, tags: fromJson(row.tags) } : null;
    },

    async driftHinted(nodeId, keys) {
      if (await driftCheckOpen(context, nodeId)) return;
      try {
        await submitDriftCheck(context, systemActor, nodeId, 'watch');
      } catch (error) {
        // Nothing applied yet, or no longer approved: then there is nothing to compare with.
        if (!(error instanceof MusterError)) throw error;
        context.log.debug({ node_id: nodeId, keys: keys.length, code: error.code }, 'drift hint not followed');
      }
    },

    async closed(nodeId, reason) {
      const target = await asTarget(nodeId);
      await db.write({
        name: 'agents/closed',
        statements: [
          statement(markLastSeen, { node_id: nodeId, now: seconds(context.now()) }),
          audited(context, {
            type: 'agent.disconnected',
            actor: systemActor,
            target,
            summary: `the link of agent ${target.name} ended: ${reason}`,
            metadata: { reason },
          }),
        ],
      });
    },

    async cloneSeen(nodeId, remoteIp) {
      const target = await asTarget(nodeId);
      await record('agents/cloned', {
        type: 'agent.cloned',
        severity: 'critical',
        actor: systemActor,
        target,
        summary: `a second machine at ${remoteIp} uses the key of agent ${target.name}`,
        metadata: { ip: remoteIp },
      });
    },

    async refused(refusal, from) {
      await record('agents/refused', {
        type: 'agent.refused',
        severity: 'warning',
        actor: systemActor,
        ...(from.node_id === null ? {} : { target: await asTarget(from.node_id) }),
        summary: `an agent at ${from.remote_ip} was refused: ${refusal.message}`,
        metadata: { code: refusal.code, ip: from.remote_ip },
      });
    },
  };
}
