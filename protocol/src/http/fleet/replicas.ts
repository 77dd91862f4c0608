import { z } from 'zod';
import { unixSeconds } from '../definition/fields.ts';
import { route } from '../definition/route.ts';

export const replicaSchema = z
  .strictObject({
    name: z.string().describe('`replica.name` in its configuration'),
    incarnation: z.string().describe('random ID of the process, from its start to its end'),
    this_replica: z.boolean().describe('whether this replica sent the response'),
    version: z.string().describe('release of Muster'),
    started_at: unixSeconds,
    heartbeat_age_secs: z
      .number()
      .min(0)
      .describe('seconds since its last known heartbeat; after 10 seconds, other replicas close it'),
    ready: z.boolean().describe('whether its `/readyz` returns 200, as of its last heartbeat'),
    draining: z.boolean().describe('whether it is being drained or stopped'),
    connected_agents: z.number().int().min(0),
    leases: z.array(z.string()).describe('work that only one replica does at a time, and that this replica does now'),
    config_digest: z
      .string()
      .nullable()
      .describe(
        'equal for replicas with the same configuration, apart from names, addresses, and local files; null if unknown',
      ),
  })
  .meta({ id: 'Replica' });
export type Replica = z.infer<typeof replicaSchema>;

const example: Replica = {
  name: 'muster-1',
  incarnation: '0123456789abcdef'.repeat(2),
  this_replica: true,
  version: '0.1.0',
  started_at: 1795000000,
  heartbeat_age_secs: 1.2,
  ready: true,
  draining: false,
  connected_agents: 3334,
  leases: ['audit', 'runs/3', 'runs/7'],
  config_digest: '5f'.repeat(16),
};

export const listReplicas = route({
  id: 'listReplicas',
  method: 'GET',
  path: '/replicas',
  tag: 'Replicas',
  summary: 'List the replicas of the orchestrator, by name',
  description: 'Empty without `replica.name`: one orchestrator then uses the database alone.',
  access: 'operator',
  answers: { 200: z.array(replicaSchema) },
  errors: [],
  example: { answer: [example] },
});

export const drainReplica = route({
  id: 'drainReplica',
  method: 'POST',
  path: '/replicas/{name}/drain',
  tag: 'Replicas',
  summary: 'Move the agents and work of a replica to other replicas',
  description:
    'Within a few seconds, the replica is no longer ready, closes its agent links, and releases its leases. It keeps running and responds to requests until it is restarted or stopped. Draining it again has no effect. `undrainReplica` takes it back.',
  access: 'admin',
  params: z.strictObject({ name: z.string() }),
  answers: { 200: replicaSchema },
  errors: ['replica_not_found', 'last_replica'],
  example: { params: { name: 'muster-1' }, answer: { ...example, draining: true } },
});

export const undrainReplica = route({
  id: 'undrainReplica',
  method: 'POST',
  path: '/replicas/{name}/undrain',
  tag: 'Replicas',
  summary: 'Use a drained replica again',
  description:
    'Within a few seconds, the replica accepts agents, is ready, and takes its share of the work. Agents that have moved stay where they are. A replica that is not drained is left as it is.',
  access: 'admin',
  params: z.strictObject({ name: z.string() }),
  answers: { 200: replicaSchema },
  errors: ['replica_not_found', 'replica_stopping'],
  example: { params: { name: 'muster-1' }, answer: example },
});
