import type { AgentMessage } from '@muster/protocol/wire';
import { TokenBucket } from './token-bucket.ts';

export type ContentRequest = Extract<AgentMessage, { type: 'content_request' }>;

/** The contents that an operation references, and how many more of their bytes this link may request. */
export interface Grant {
  readonly sizes: ReadonlyMap<string, number>;
  readonly expiresAt: number;
  left: number;
}

/** A link's requests for contents. */
export class LinkContents {
  /** Pending requests, oldest first. The first request may be in progress. */
  readonly requests: ContentRequest[] = [];
  /** Number of bytes that these requests cover. */
  requestedBytes = 0;
  /** Bytes of frames not yet written to the network. */
  unsentBytes = 0;
  isServed = false;
  /** The link's grants by operation id, least recently checked first. */
  readonly grants = new Map<string, Grant>();
  readonly bucket: TokenBucket;

  constructor(burst: number, now: number) {
    this.bucket = new TokenBucket(burst, now);
  }
}
