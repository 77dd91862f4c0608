import type { OffAgent } from '@muster/protocol/http';

/** The open dialog of the reconcile page, with the agents or drift records that it concerns. */
export type ReconcileDialog =
  | { readonly kind: 'repair'; readonly agents: readonly OffAgent[] }
  | { readonly kind: 'accept'; readonly driftIds: readonly string[] }
  | { readonly kind: 'withdraw'; readonly driftId: string };
