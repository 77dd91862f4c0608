import {
  type ConnectionOptions,
  type NatsConnection,
  NatsConnectionImpl,
  ProtocolHandler,
  setTransportFactory,
} from '@nats-io/transport-node';
import { NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';

/**
 * A client of the NATS library whose socket can be destroyed at any time. The library itself leaves a socket open if
 * NATS accepts the connection and then sends nothing, and closes a lost connection only after the operating system has
 * accepted all waiting data.
 */
export interface DisposableClient {
  readonly client: NatsConnection;
  /** @throws Error if no connection is established within the time limit in the options */
  connect(): Promise<void>;
  /** Destroys the socket, even while the connection is being opened. Does not send waiting messages. */
  destroy(): Promise<void>;
}

class Transport extends NodeTransport {
  /** Reads data. Closes the connection when the library stops reading, as it does after a malformed message. */
  override async *iterate() {
    try {
      yield* super.iterate();
    } finally {
      this.socket?.destroy(new Error('NATS sent a malformed message'));
    }
  }
}

// The constructor is private only in the type declarations. The library's `connect` does the same, but returns no
// client if it fails.
const Client = NatsConnectionImpl as unknown as new (options: ConnectionOptions) => NatsConnectionImpl;

export function createClient(options: ConnectionOptions): DisposableClient {
  const client = new Client(options);
  const protocol = new ProtocolHandler(client.options, client);
  client.protocol = protocol;
  return {
    client: client as unknown as NatsConnection,
    connect() {
      setTransportFactory({ factory: () => new Transport() });
      return protocol.dialLoop();
    },
    async destroy() {
      // There is no transport before the first attempt.
      (protocol.transport as NodeTransport | undefined)?.discard();
      await client.close();
    },
  };
}
