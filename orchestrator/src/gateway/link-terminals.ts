import type { Channel } from './terminal-channel.ts';

/** A link's terminals. */
export class LinkTerminals {
  readonly channels = new Map<number, Channel>();
  /** The last assigned channel number. */
  last = 0;
  /** Bytes of input not yet written to the network. */
  unsentBytes = 0;
}
