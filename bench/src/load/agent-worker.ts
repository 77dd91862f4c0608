// A process that simulates many agents and executes its parent's commands.
import { SimulatedAgent, type SimulatedTarget, sampleSecs } from './simulated-agent.ts';

export type WorkerOrder =
  | { type: 'connect'; targets: SimulatedTarget[]; count: number; first: number; atOnce: number; sampled: boolean }
  | { type: 'send'; bytes: number }
  | { type: 'leave' }
  | { type: 'return'; atOnce: number }
  /** Requests the last operation that one of the agents received. */
  | { type: 'last_operation' };
export type WorkerAnswer = { type: 'done'; operation?: string } | { type: 'failed'; message: string };

const agents: SimulatedAgent[] = [];
/** Timer for the samples. On each tick, some of the agents take a sample. */
let measuring: NodeJS.Timeout | undefined;
const measuringSteps = 300;

function measure(): void {
  let step = 0;
  measuring = setInterval(
    () => {
      for (let at = step; at < agents.length; at += measuringSteps) agents[at]!.measured();
      step = (step + 1) % measuringSteps;
    },
    (sampleSecs * 1000) / measuringSteps,
  );
}

/** Runs `work` for all agents, for at most `atOnce` of them at the same time. */
async function each(of: Iterable<SimulatedAgent>, atOnce: number, work: (agent: SimulatedAgent) => Promise<void>) {
  const next = of[Symbol.iterator]();
  const worker = async () => {
    for (let one = next.next(); !one.done; one = next.next()) await work(one.value);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, agents.length) }, worker));
}

async function execute(order: WorkerOrder): Promise<WorkerAnswer> {
  if (order.type === 'last_operation') return { type: 'done', operation: JSON.stringify(agents.at(-1)!.lastOperation) };
  if (order.type === 'send') {
    // Sends in small batches, so that data in flight does not affect the measured memory.
    for (let i = 0; i < agents.length; i += 10)
      await Promise.all(agents.slice(i, i + 10).map((agent) => agent.sendReports(order.bytes)));
    return { type: 'done' };
  }
  if (order.type === 'leave') {
    clearInterval(measuring);
    await each(agents, 64, (agent) => agent.leave());
    return { type: 'done' };
  }
  if (order.type === 'return') {
    measure();
    await each(agents, order.atOnce, (agent) => agent.connect());
    return { type: 'done' };
  }
  if (order.sampled) measure();
  let next = 0;
  const dialler = async () => {
    while (next < order.count) {
      const number = order.first + next++;
      const target = order.targets[number % order.targets.length]!;
      const agent = await SimulatedAgent.create(target, number, order.sampled);
      agents.push(agent);
      agent.measured();
      await agent.connect();
    }
  };
  await Promise.all(Array.from({ length: Math.min(order.atOnce, order.count) }, dialler));
  return { type: 'done' };
}

process.on('message', (order: WorkerOrder) => {
  execute(order).then(
    (answer) => process.send!(answer),
    (error: Error) => process.send!({ type: 'failed', message: error.message } satisfies WorkerAnswer),
  );
});
process.on('disconnect', () => process.exit());
