import { mkdirSync, rmSync } from 'node:fs';
import type { OperationMessage } from '@muster/protocol/wire';
import type { EngineOptions } from '../converge-engine.ts';
import { type Reported, startAgent, type TestAgent } from './agent.ts';
import { cutOff, isThere, type JournalStep } from './cut.ts';

/** An agent that the provider contract controls, in this process or on another machine. */
export interface ContractAgent {
  run(operation: OperationMessage): Promise<Reported>;
  /** Deletes the agent's data, and leaves the machine unchanged. */
  forget(): Promise<void>;
  /**
   * Kills the agent during an operation, restarts it, and resends the operation.
   * @param at the step at which to kill, or its number from 1; 0 for no kill. A step that does not occur kills nothing.
   * @returns the steps that the agent completed before it was killed
   */
  killedAt(operation: OperationMessage, at: JournalStep | number): Promise<{ points: string[]; reported: Reported }>;
  /** Cancels an operation at a step, or stops the agent at that step as SIGTERM does and restarts it. */
  interruptedAt(
    operation: OperationMessage,
    at: JournalStep,
    by: 'cancel' | 'stop',
  ): Promise<{ points: string[]; reported: Reported }>;
  stop(): Promise<void>;
}

/**
 * Starts an agent without data.
 * @param dataDir deleted and recreated
 */
export async function contractAgent(dataDir: string, options: Partial<EngineOptions> = {}): Promise<ContractAgent> {
  const fresh = () => {
    rmSync(dataDir, { recursive: true, force: true });
    mkdirSync(dataDir, { mode: 0o700 });
    return startAgent(dataDir, options);
  };
  let agent: TestAgent = await fresh();
  return {
    run(operation) {
      // Without an acknowledgement, finished operations count as open, and the agent refuses the 65th.
      agent.engine.spool.acknowledge(agent.engine.spool.lastSeq());
      return agent.run(operation);
    },
    stop: () => agent.stop(),
    async forget() {
      await agent.stop();
      agent = await fresh();
    },
    async killedAt(operation, at) {
      await agent.stop();
      const { points } = await cutOff(dataDir, operation, at, options);
      agent = await startAgent(dataDir, options);
      await agent.engine.accept(operation);
      return { points, reported: await agent.ended(operation.operation_id) };
    },
    async interruptedAt(operation, at, by) {
      await agent.stop();
      const points: string[] = [];
      let interrupt: (() => void) | null = null;
      const interrupted = new Promise<void>((resolve) => {
        interrupt = resolve;
      });
      agent = await startAgent(dataDir, {
        ...options,
        crashPoint(point) {
          points.push(point);
          if (!isThere(at, points)) return;
          if (by === 'cancel') agent.engine.cancel(operation.operation_id);
          interrupt?.();
        },
      });
      await agent.engine.accept(operation);
      if (by === 'stop') {
        await Promise.race([interrupted, agent.ended(operation.operation_id)]);
        await agent.stop();
        agent = await startAgent(dataDir, options);
      }
      return { points, reported: await agent.ended(operation.operation_id) };
    },
  };
}
