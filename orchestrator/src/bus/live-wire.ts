/** Sends messages between two processes without storing them. Messages arrive in order, but may be lost or duplicated. */
export interface LiveWire {
  readonly isConnected: boolean;
  /** @returns whether the message was accepted for sending; it may still be lost */
  send(to: string, bytes: Buffer): boolean;
  /** Sets the only listener. */
  listen(listener: LiveListener): void;
  close(): Promise<void>;
}

export interface LiveListener {
  /** @param from incarnation of the sender, which is authentic. The message may be a duplicate */
  received(from: string, bytes: Buffer): void;
  /** Called when the connection is lost, and messages may be lost too. */
  lost(): void;
}
