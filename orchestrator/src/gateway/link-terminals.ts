import type { Channel } from './terminal-channel.ts';

/** The terminals of one link. A link gets it with its first terminal. */
export class LinkTerminals {
  readonly channels = new Map<number, Channel>();
  /** The newest channel number in use. */
  last = 0;
  /** Bytes of input that the network has not taken yet. */
  unsentBytes = 0;
}
