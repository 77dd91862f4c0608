import { MusterError } from '@muster/protocol';
import { type Hello, protocolVersion } from '@muster/protocol/wire';
import { fromJson, toJson } from '../../store/json-text.ts';
import { agentById, setAttributes } from '../../store/queries/agents/agents.ts';
import { agentsWithWork } from '../../store/queries/operations/dispatch.ts';
import { statement } from '../../store/transaction.ts';
import { type AgentUsage, createAgentUsage } from '../agents/agent-usage.ts';
import { createDepartures, type Departures } from '../agents/disconnect-writer.ts';
import type { PendingList } from '../agents/pending-list.ts';
import type { Refusals } from '../audit/refusals.ts';
import { driftCheckWaits, submitDriftCheck } from '../drift/drift.ts';
import type { ReportSpace } from '../fleet/disk-space.ts';
import { cancellationsFor } from '../operation-end/cancellation.ts';
import { createAppliedMemory } from '../operations/applied-memory.ts';
import { createDispatchMarks } from '../operations/dispatch-marks.ts';
import type { LiveOutput } from '../operations/live-output.ts';
import { createOperationCache } from '../operations/operation-cache.ts';
import { createPayloads } from '../operations/payloads.ts';
import { createOperationScrub, createReportScrub } from '../operations/report-secrets.ts';
import { createSentNames, type SentNamesOf } from '../operations/sent-names.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { createAdmission } from './agent-admission.ts';
import { recordClone, recordRefusedAgent } from './agent-incidents.ts';
import { keyOf } from './agent-keys.ts';
import type { AgentLinks, Caller } from './agent-link.ts';
import { type ReportMemory, reported } from './agent-reports.ts';
import { nextOperation } from './dispatch.ts';
import { judgeRival } from './link-rivals.ts';
import type { Refusal } from './refusal.ts';
import { createSentContents } from './sent-contents.ts';

/** Limits on the data that agents can store. Read on each use, because the configuration can be reloaded. */
export interface ReportRules {
  /** Maximum number of bytes of one agent's reports per day. */
  readonly dailyBytes: number;
  readonly space: ReportSpace;
  /** Overrides the source of contents in tests. */
  readonly sentNames?: SentNamesOf;
}

/** Number of bytes that each sample counts toward the daily limit; approximately the size of its row. */
const sampleBytes = 160;

export function createAgentLinks(
  context: Context,
  refusals: Pick<Refusals, 'record'>,
  pending: PendingList,
  sampled: AgentLinks['sampled'],
  liveOutput: Pick<LiveOutput, 'printed'>,
  rules: ReportRules,
): AgentLinks {
  const { db, incarnation } = context;
  const cache = createOperationCache(context.bus);
  const payloads = createPayloads(context);
  const sources = {
    cache,
    payloads,
    markOnly: createDispatchMarks(context),
  };
  const departures = createDepartures(context);
  const scrub = createReportScrub(createOperationScrub(context, cache, payloads));

  const applied = createAppliedMemory();
  const usage = createAgentUsage(context, () => rules.dailyBytes);
  const memory: ReportMemory = {
    cache,
    applied,
    payloads,
    sentNames: rules.sentNames ?? createSentNames(payloads),
    usage,
    space: () => rules.space,
  };
  const admit = createAdmission(context, pending, usage);

  return {
    keyOf: (hello) => keyOf(context, hello),
    async admit(hello, from) {
      // The agent may have been connected to another orchestrator process since its last link.
      applied.forget(from.node_id);
      const refusal = context.isReplica ? await prepareAsReplica(context, { usage, departures }, hello, from) : null;
      return refusal === null ? admit(hello, from) : { admitted: false, refusal };
    },

    async sampled(nodeId, samples) {
      const { bytes } = await usage.today(nodeId);
      // Acknowledges samples beyond the limit without storing them. Otherwise, the agent would resend them.
      const isStored = bytes < usage.limits.bytes;
      if (isStored) await sampled(nodeId, samples);
      const more = { bytes: isStored ? samples.length * sampleBytes : 0 };
      await usage.consume({ node_id: nodeId }, more, async (statements) => {
        if (statements.length > 0) await db.write({ name: 'agents/samples', statements });
      });
    },

    opened: (node_id) => context.bus.publish({ type: 'agent_linked', node_id }),

    async attributesChanged(nodeId, attributes) {
      const set = { node_id: nodeId, attributes: toJson(attributes), now: seconds(context.now()), incarnation };
      await db.write({ name: 'agents/attributes', statements: [statement(setAttributes, set)] });
      context.bus.publish({ type: 'agent_attributes', node_id: nodeId });
    },

    reported: async (nodeId, instanceId, seq, reports) =>
      reported(context, memory, nodeId, instanceId, seq, await scrub(reports)),

    nextOperation: (nodeId, version = protocolVersion) => nextOperation(context, sources, nodeId, version),
    ...createSentContents(context, payloads),
    cancellations: (nodeId) => cancellationsFor(context, nodeId),

    async agentsWithWork() {
      return (await db.all(agentsWithWork, {})).map(({ node_id }) => node_id);
    },

    async standing(nodeId) {
      const row = await db.get(agentById, { node_id: nodeId });
      return row ? { status: row.status, name: row.name, tags: fromJson(row.tags) } : null;
    },

    printed: (nodeId, progress) => liveOutput.printed(nodeId, progress),

    async driftHinted(nodeId, keys) {
      if (rules.space !== 'ample' || (await driftCheckWaits(context, nodeId))) return;
      const { bytes, hints } = await usage.today(nodeId);
      if (bytes >= usage.limits.bytes || hints >= usage.limits.hints) return;
      try {
        await usage.consume({ node_id: nodeId }, { hints: 1 }, (statements) =>
          submitDriftCheck(context, systemActor, nodeId, 'watch', statements),
        );
      } catch (error) {
        // The agent has no snapshot, because nothing has been applied to it or it is no longer approved.
        if (!(error instanceof MusterError)) throw error;
        context.log.debug({ node_id: nodeId, keys: keys.length, code: error.code }, 'ignored drift hint');
      }
    },

    // Records no events for closed links, because links break and recover often. A scan finds lost agents.
    closed: (nodeId, _reason, lastContactAt) => departures.departed(nodeId, lastContactAt),

    cloneSeen: (nodeId, remoteIp) => recordClone(context, nodeId, remoteIp),

    refused: (refusal, from) => recordRefusedAgent(context, refusals, refusal, from),
  };
}

/**
 * Clears the cached usage, which another replica may have changed, and waits until the agent has no other link.
 * @returns null, or the refusal of the new link
 */
async function prepareAsReplica(
  context: Context,
  { usage, departures }: { usage: AgentUsage; departures: Departures },
  hello: Hello,
  from: Caller,
): Promise<Refusal | null> {
  usage.forget(from.node_id);
  await departures.settled(from.node_id);
  return await judgeRival(context, hello, from);
}
