import type { OffAgent } from '@muster/protocol/http';

/** The dialog that is open on the out-of-sync page, with the agents or drift records that it concerns. */
export type OffDialog =
  | { readonly kind: 'repair'; readonly agents: readonly OffAgent[] }
  | { readonly kind: 'accept'; readonly driftIds: readonly string[] }
  | { readonly kind: 'check'; readonly agents: readonly OffAgent[] }
  | { readonly kind: 'withdraw'; readonly driftId: string };
