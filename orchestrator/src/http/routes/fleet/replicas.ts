import { MusterError } from '@muster/protocol';
import { listReplicas, type ReplicaListParts, requestDraining } from '../../../domain/fleet/replica-list.ts';
import { actorIn } from '../../../domain/operators/sessions.ts';
import type { Handlers } from '../../server/handlers.ts';

/** @param parts null without `replica.name` */
export const replicaHandlers = (parts: ReplicaListParts | null) =>
  ({
    listReplicas: async () => (parts === null ? [] : listReplicas(parts)),
    drainReplica: async ({ params, session }) => requestDraining(shared(parts), actorIn(session), params.name, true),
    undrainReplica: async ({ params, session }) => requestDraining(shared(parts), actorIn(session), params.name, false),
  }) satisfies Partial<Handlers>;

/** @throws MusterError replica_not_found */
function shared(parts: ReplicaListParts | null): ReplicaListParts {
  if (parts === null) throw new MusterError('replica_not_found', 'replica.name is not set');
  return parts;
}
