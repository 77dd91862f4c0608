import type { OffAgent } from '@muster/protocol/http';

/** The open dialog on the page of out-of-sync agents, with the agents or drift records that it is about. */
export type OffDialog =
  | { readonly kind: 'repair'; readonly agents: readonly OffAgent[] }
  | { readonly kind: 'accept'; readonly driftIds: readonly string[] }
  | { readonly kind: 'withdraw'; readonly driftId: string };
