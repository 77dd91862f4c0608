import { hasEnded } from '@muster/protocol';
import type { OutputProgress } from '@muster/protocol/wire';
import { reportedOperation } from '../../store/queries/operations.ts';
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
  /** Returns the output by `module/identity`; empty once the operation has ended. */
  of(nodeId: string, operationId: string): Promise<Record<string, Shown>>;
  close(): void;
}

export interface Shown {
  stdout: string;
  stderr: string;
  /** Whether output before or within the text is missing. */
  truncated: boolean;
}

/** Maximum number of programs whose output is kept per operation. One is running, and the others have been reported. */
const maxPrograms = 4;
/** Maximum characters for all agents. The agents with the oldest output are evicted. */
const maxCharacters = 32 * 1024 * 1024;

interface Watched {
  operationId: string;
  programs: Map<string, { stdout: OutputTail; stderr: OutputTail }>;
}

export function createLiveOutput(context: Context, capacity = maxCharacters): LiveOutput {
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
      while (characters > capacity && agents.size > 1) forget(agents.keys().next().value as string);
      context.bus.publish({ type: 'output', node_id: nodeId, operation_id, resource });
    },

    async of(nodeId, operationId) {
      const watched = agents.get(nodeId);
      if (watched?.operationId !== operationId) return {};
      const scrub = await scrubOf(operationId);
      const shown = (tail: OutputTail) => tail.text(scrub === null ? null : (lines) => scrub(lines, true));
      return Object.fromEntries(
        [...watched.programs].map(([resource, { stdout, stderr }]) => [
          resource,
          { stdout: shown(stdout), stderr: shown(stderr), truncated: stdout.isCut || stderr.isCut },
        ]),
      );
    },

    close: unsubscribe,
  };
}
