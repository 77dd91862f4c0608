import { hasEnded } from '@muster/protocol';
import type { OutputProgress } from '@muster/protocol/wire';
import { z } from 'zod';
import { type Ask, AskFailed } from '../../bus/asks.ts';
import { reportedOperation } from '../../store/queries/operations/operations.ts';
import type { Context } from '../shared/context.ts';
import { OutputTail } from './output-tail.ts';
import { createPayloads } from './payloads.ts';
import { createOperationScrub } from './report-secrets.ts';

/**
 * Keeps the output of running programs in memory, for live viewers. Keeps only the newest part for each agent's current
 * operation. The stored output comes from the agent's final report.
 */

export interface LiveOutput {
  printed(nodeId: string, progress: OutputProgress): Promise<void>;
  /**
   * Returns the output by `module/identity`; empty once the operation has ended. If the agent is connected to another
   * replica, asks that replica, and returns nothing if there is no answer.
   */
  of(nodeId: string, operationId: string): Promise<Record<string, Shown>>;
  close(): void;
}

export interface Shown {
  stdout: string;
  stderr: string;
  /** Whether output before or within the text is missing. */
  truncated: boolean;
}

/** Asks the replica that an agent is connected to for the output of the agent's operation. */
export const askLiveOutput: Ask<{ node_id: string; operation_id: string }, Record<string, Shown>> = {
  topic: 'operations/live-output',
  question: z.object({ node_id: z.string().max(64), operation_id: z.string().max(64) }),
  answer: z.record(z.string(), z.object({ stdout: z.string(), stderr: z.string(), truncated: z.boolean() })),
};

/** Milliseconds to wait for another replica. */
const askMs = 2_000;
/** Maximum size of an answer to another replica as JSON, in bytes. A bus message is limited to 256 KiB. */
const maxAnswerBytes = 250 * 1024;

/**
 * Maximum number of programs whose output is kept per operation. One program is running, and the other programs have
 * been reported.
 */
const maxPrograms = 4;
/** Maximum number of characters for all agents. The agents with the oldest output are evicted. */
const maxCharacters = 32 * 1024 * 1024;

interface Watched {
  operationId: string;
  programs: Map<string, { stdout: OutputTail; stderr: OutputTail }>;
}

export function createLiveOutput(context: Context): LiveOutput {
  /** Output by node id, in the order of the last update. */
  const agents = new Map<string, Watched>();
  let characters = 0;
  const scrubOf = createOperationScrub(context, { secretsOf: () => undefined }, createPayloads(context));

  const lengthOf = ({ programs }: Watched) =>
    [...programs.values()].reduce((sum, { stdout, stderr }) => sum + stdout.length + stderr.length, 0);
  const forget = (nodeId: string) => {
    const watched = agents.get(nodeId);
    if (watched === undefined) return;
    characters -= lengthOf(watched);
    agents.delete(nodeId);
  };
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'agent_removed') forget(hint.node_id);
    if (hint.type === 'operation_ended' && agents.get(hint.node_id)?.operationId === hint.operation_id)
      forget(hint.node_id);
  });

  const isWatchable = async (nodeId: string, operation_id: string): Promise<boolean> => {
    const row = await context.db.get(reportedOperation, { operation_id });
    return row !== undefined && row.node_id === nodeId && row.kind !== 'drift' && !hasEnded(row.status);
  };

  const ofOwn = async (nodeId: string, operationId: string): Promise<[string, Shown][]> => {
    const watched = agents.get(nodeId);
    if (watched?.operationId !== operationId) return [];
    const scrub = await scrubOf(operationId);
    const shown = (tail: OutputTail) => tail.text(scrub === null ? null : (lines) => scrub(lines, true));
    return [...watched.programs].map(([resource, { stdout, stderr }]) => [
      resource,
      { stdout: shown(stdout), stderr: shown(stderr), truncated: stdout.isCut || stderr.isCut },
    ]);
  };
  const stopAnswering = context.bus.answer(askLiveOutput, async ({ node_id, operation_id }) =>
    newestWithin(await ofOwn(node_id, operation_id), maxAnswerBytes),
  );

  return {
    async printed(nodeId, { operation_id, resource, stdout, stderr }) {
      if (agents.get(nodeId)?.operationId !== operation_id && !(await isWatchable(nodeId, operation_id))) return;
      const known = agents.get(nodeId);
      const programs = known?.operationId === operation_id ? known.programs : new Map();
      forget(nodeId);
      const program = programs.get(resource) ?? { stdout: new OutputTail(), stderr: new OutputTail() };
      programs.delete(resource);
      programs.set(resource, program);
      if (programs.size > maxPrograms) programs.delete(programs.keys().next().value);
      if (stdout !== null) program.stdout.add(stdout);
      if (stderr !== null) program.stderr.add(stderr);
      const watched = { operationId: operation_id, programs };
      agents.set(nodeId, watched);
      characters += lengthOf(watched);
      while (characters > maxCharacters && agents.size > 1) forget(agents.keys().next().value as string);
      context.bus.publish({ type: 'output', node_id: nodeId, operation_id, resource });
    },

    async of(nodeId, operationId) {
      const replica = context.presence.replicaOf(nodeId);
      if (replica === null) return Object.fromEntries(await ofOwn(nodeId, operationId));
      const question = { node_id: nodeId, operation_id: operationId };
      try {
        return await context.bus.ask(replica.incarnation, askLiveOutput, question, { milliseconds: askMs });
      } catch (error) {
        if (!(error instanceof AskFailed)) throw error;
        context.log.debug(
          { replica: replica.name, reason: error.reason },
          'failed to get live output from another replica',
        );
        return {};
      }
    },

    close() {
      unsubscribe();
      stopAnswering();
    },
  };
}

/**
 * Returns the output of the programs that started last, as many as fit.
 * @param shown in the order in which the programs started
 * @param bytes maximum size as JSON
 */
export function newestWithin(shown: readonly (readonly [string, Shown])[], bytes: number): Record<string, Shown> {
  const kept: (readonly [string, Shown])[] = [];
  let size = 2;
  for (const entry of [...shown].reverse()) {
    size += Buffer.byteLength(JSON.stringify(entry));
    if (size > bytes) break;
    kept.unshift(entry);
  }
  return Object.fromEntries(kept);
}
