import { createInterface } from 'node:readline';
import type { OperationMessage } from '@muster/protocol/wire';
import { contractAgent } from './contract-agent.ts';
import type { JournalStep } from './cut.ts';

/**
 * Runs the agent for the provider contract tests on another machine. Argument: its data directory. Reads one command
 * per line from stdin, and writes one response line per command to stdout, in order.
 */

export type Order =
  | { do: 'run'; operation: OperationMessage }
  | { do: 'killedAt'; operation: OperationMessage; at: JournalStep | number }
  | { do: 'interruptedAt'; operation: OperationMessage; at: JournalStep; by: 'cancel' | 'stop' }
  | { do: 'forget' };
export type Answer = { answer: unknown } | { fault: string };

if (import.meta.main) {
  const agent = await contractAgent(process.argv[2] as string);
  const execute = (order: Order): Promise<unknown> => {
    if (order.do === 'run') return agent.run(order.operation);
    if (order.do === 'killedAt') return agent.killedAt(order.operation, order.at);
    if (order.do === 'interruptedAt') return agent.interruptedAt(order.operation, order.at, order.by);
    return agent.forget();
  };
  const answer = (answer: Answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
  answer({ answer: 'ready' });
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      answer({ answer: (await execute(JSON.parse(line) as Order)) ?? null });
    } catch (error) {
      answer({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
  process.exit(0);
}
