import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import { listAgents } from '@muster/protocol/http';
import { nextMessage } from '../servers/server-process.ts';
import type { SteadyLoadOptions, SteadyLoadSeen } from './steady-load.ts';

/** Number of agents whose data the client reads. */
const readAgents = 500;

/** Returns the paths of typical reads by operators and programs. */
export async function typicalReads(call: Client): Promise<string[]> {
  const some = await call(listAgents, { query: { limit: String(readAgents) } });
  const since = Math.floor(Date.now() / 1000) - 3600;
  return some.flatMap(({ node_id, name }, at) => [
    `/api/v1/agents/${node_id}`,
    `/api/v1/agents?limit=50&offset=${at}`,
    `/api/v1/agents/${name}/metrics/latest`,
    `/api/v1/agents?filter=bench%3Dyes&limit=50`,
    `/api/v1/agents/${node_id}/metrics?since=${since}`,
    '/api/v1/state/operations?limit=50',
    '/api/v1/status',
  ]);
}

/** Sends requests at a steady rate from a separate process. */
export function loadSteadily(options: SteadyLoadOptions): Promise<SteadyLoadSeen> {
  const child = fork(join(import.meta.dirname, 'steady-load.ts'));
  const seen = nextMessage<SteadyLoadSeen>(child);
  child.send(options);
  return seen;
}
