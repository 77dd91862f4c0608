import { listReplicas, type ReplicaListParts } from '../../../domain/fleet/replica-list.ts';
import type { Handlers } from '../../server/handlers.ts';

/** @param parts null without `replica.name` */
export const replicaHandlers = (parts: ReplicaListParts | null) =>
  ({ listReplicas: async () => (parts === null ? [] : listReplicas(parts)) }) satisfies Partial<Handlers>;
