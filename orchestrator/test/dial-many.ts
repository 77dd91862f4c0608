// A thread with many agents. Connects, disconnects, and reconnects all of them together on request.
import { parentPort, workerData } from 'node:worker_threads';
import { dialAsAgent, newAgentKey, type TestAgent } from './test-agent.ts';

const { port, count } = workerData as { port: number; count: number };
const keys = await Promise.all(Array.from({ length: count }, () => newAgentKey()));
let agents: TestAgent[] = [];

async function join(): Promise<void> {
  agents = await Promise.all(
    keys.map(async (key) => {
      const agent = await dialAsAgent(port, key);
      await agent.join();
      return agent;
    }),
  );
  parentPort!.postMessage('joined');
}

parentPort!.on('message', (word: 'cut' | 'return') => {
  if (word === 'return') {
    void join();
    return;
  }
  for (const agent of agents) agent.end();
  parentPort!.postMessage('cut');
});
await join();
