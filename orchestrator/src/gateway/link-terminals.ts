import type { Channel } from './terminal-channel.ts';

/** The terminals of one link. Created with the first terminal. */
export class LinkTerminals {
  readonly channels = new Map<number, Channel>();
  /** The newest channel number in use. */
  last = 0;
  /** Bytes of input not yet written to the network. */
  unsentBytes = 0;
}
