import { MusterError } from '@muster/protocol';
import {
  drainNamedReplica,
  listReplicas,
  type ReplicaListParts,
  undrainNamedReplica,
} from '../../../domain/fleet/replica-list.ts';
import { actorIn } from '../../../domain/operators/sessions.ts';
import type { Handlers } from '../../server/handlers.ts';

/** @param parts null without `replica.name` */
export const replicaHandlers = (parts: ReplicaListParts | null) =>
  ({
    listReplicas: async () => (parts === null ? [] : listReplicas(parts)),
    drainReplica: async ({ params, session }) => drainNamedReplica(shared(parts), actorIn(session), params.name),
    undrainReplica: async ({ params, session }) => undrainNamedReplica(shared(parts), actorIn(session), params.name),
  }) satisfies Partial<Handlers>;

/** @throws MusterError replica_not_found */
function shared(parts: ReplicaListParts | null): ReplicaListParts {
  if (parts === null) throw new MusterError('replica_not_found', 'replica.name is not set');
  return parts;
}
