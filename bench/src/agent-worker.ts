// A process full of simulated agents; does what its parent says.
import { SimulatedAgent, type SimulatedTarget } from './simulated-agent.ts';

export type WorkerOrder =
  | { type: 'connect'; target: SimulatedTarget; count: number; first: number; atOnce: number; sampled: boolean }
  | { type: 'send'; bytes: number }
  /** Asks for the text of the last operation that was received. */
  | { type: 'last_operation' };
export type WorkerAnswer = { type: 'done'; operation?: string } | { type: 'failed'; message: string };

const agents: SimulatedAgent[] = [];
/** As agents do by default. */
const sampleMs = 30_000;

async function carryOut(order: WorkerOrder): Promise<WorkerAnswer> {
  if (order.type === 'last_operation') return { type: 'done', operation: JSON.stringify(agents.at(-1)!.lastOperation) };
  if (order.type === 'send') {
    // A few at a time: how much of it is on its way at the same moment is not what is measured.
    for (let i = 0; i < agents.length; i += 10)
      await Promise.all(agents.slice(i, i + 10).map((agent) => agent.sendReports(order.bytes)));
    return { type: 'done' };
  }
  if (order.sampled)
    setInterval(() => {
      for (const agent of agents) agent.measured();
    }, sampleMs);
  let next = 0;
  const dialler = async () => {
    while (next < order.count) {
      const agent = await SimulatedAgent.create(order.target, order.first + next++, order.sampled);
      agents.push(agent);
      agent.measured();
      await agent.connect();
    }
  };
  await Promise.all(Array.from({ length: Math.min(order.atOnce, order.count) }, dialler));
  return { type: 'done' };
}

process.on('message', (order: WorkerOrder) => {
  carryOut(order).then(
    (answer) => process.send!(answer),
    (error: Error) => process.send!({ type: 'failed', message: error.message } satisfies WorkerAnswer),
  );
});
process.on('disconnect', () => process.exit());
