// Runs the hostile agents in a separate process, so that they do not delay the bench's requests.
import { HostileAgent, type HostileCounts, type Strategy, strategies } from '../../../e2e/hostile-agent.ts';

export interface HostileOrder {
  port: number;
  /** Enrollment token for each strategy's agent. */
  tokens: Record<Strategy, string>;
}
export type HostileAnswer = Record<Strategy, HostileCounts>;

let agents: [Strategy, HostileAgent][] = [];

process.on('message', async (order: HostileOrder | 'counts') => {
  if (order === 'counts') {
    process.send!(Object.fromEntries(agents.map(([strategy, { counts }]) => [strategy, counts])));
    return;
  }
  agents = await Promise.all(
    (Object.keys(strategies) as Strategy[]).map(
      async (strategy): Promise<[Strategy, HostileAgent]> => [
        strategy,
        await HostileAgent.create(order.port, order.tokens[strategy], strategy),
      ],
    ),
  );
  for (const [, agent] of agents) void agent.run();
  process.send!({});
});
process.on('disconnect', () => process.exit());
