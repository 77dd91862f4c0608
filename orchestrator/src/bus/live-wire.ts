/** Messages between two processes that nothing stores: each is delivered at most once, in order, or is lost. */
export interface LiveWire {
  readonly isConnected: boolean;
  /** @returns whether the message was handed over; it may still be lost */
  send(to: string, bytes: Buffer): boolean;
  /** Sets the only listener. */
  listen(listener: LiveListener): void;
  close(): Promise<void>;
}

export interface LiveListener {
  /** @param from incarnation of the sender, which is authentic. The message may be a repeated one */
  received(from: string, bytes: Buffer): void;
  /** The connection was lost, and messages with it. */
  lost(): void;
}
