import { mkdirSync, rmSync } from 'node:fs';
import type { OperationMessage } from '@muster/protocol/wire';
import { startAgent, type TestAgent, type Told } from './agent.ts';
import { cutOff, isThere, type JournalStep } from './cut.ts';

/** An agent as the provider contract drives it, in this process or in a machine of its own. */
export interface ContractAgent {
  /** Carries out an operation to its end. */
  run(operation: OperationMessage): Promise<Told>;
  /** It loses all that it knows; the machine stays as it is. */
  forget(): Promise<void>;
  /**
   * Has it killed in the middle of an operation, started again, and sent the operation again.
   * @param at the step it dies at, or its number from 1; 0: it is not killed. One that this time does not come kills nobody
   * @returns the steps it passed, up to the one it died at
   */
  killedAt(operation: OperationMessage, at: JournalStep | number): Promise<{ points: string[]; told: Told }>;
  /** Has it cancelled in the middle, or the agent stopped, as on SIGTERM, and started again. */
  interruptedAt(
    operation: OperationMessage,
    at: JournalStep,
    by: 'cancel' | 'stop',
  ): Promise<{ points: string[]; told: Told }>;
  stop(): Promise<void>;
}

/** @param dataDir made anew: what is there is lost */
export async function contractAgent(dataDir: string): Promise<ContractAgent> {
  const fresh = () => {
    rmSync(dataDir, { recursive: true, force: true });
    mkdirSync(dataDir, { mode: 0o700 });
    return startAgent(dataDir);
  };
  let agent: TestAgent = await fresh();
  return {
    run: (operation) => agent.run(operation),
    stop: () => agent.stop(),
    async forget() {
      await agent.stop();
      agent = await fresh();
    },
    async killedAt(operation, at) {
      await agent.stop();
      const { points } = await cutOff(dataDir, operation, at);
      agent = await startAgent(dataDir);
      await agent.engine.accept(operation);
      return { points, told: await agent.ended(operation.operation_id) };
    },
    async interruptedAt(operation, at, by) {
      await agent.stop();
      const points: string[] = [];
      let interrupt: (() => void) | null = null;
      const interrupted = new Promise<void>((resolve) => {
        interrupt = resolve;
      });
      agent = await startAgent(dataDir, {
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
        agent = await startAgent(dataDir);
      }
      return { points, told: await agent.ended(operation.operation_id) };
    },
  };
}
