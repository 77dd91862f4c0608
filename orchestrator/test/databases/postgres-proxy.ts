import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The message with which a client ends its connection: its type and length. */
const terminate = Buffer.from([0x58, 0, 0, 0, 4]);

/** A proxy in front of a PostgreSQL server. The proxy can drop connections without the server noticing. */
export interface PostgresProxy {
  /** URL of the database behind the proxy. */
  readonly url: string;
  /**
   * Closes all connections to clients and refuses new connections. The server continues, but its responses are lost.
   */
  cut(): void;
  /** Does the same when a client sends a message that contains this text, and does not forward the message. */
  cutAt(text: string): void;
  /** Accepts connections again. */
  restore(): void;
  /** From now on, ignores messages with which clients end their connections, as an unreachable server does. */
  ignoreEnd(): void;
  close(): Promise<void>;
}

/** @param to URL of the database */
export async function postgresProxy(to: string): Promise<PostgresProxy> {
  const target = new URL(to);
  const clients = new Set<Socket>();
  const all = new Set<Socket>();
  let refuses = false;
  let ignoresEnd = false;
  let cutText: string | null = null;
  const cut = () => {
    refuses = true;
    for (const client of clients) client.destroy();
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (refuses) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    clients.add(client);
    for (const socket of [client, upstream]) {
      all.add(socket);
      socket.on('error', () => undefined).on('close', () => all.delete(socket));
    }
    client.on('data', (data) => {
      if (cutText !== null && data.includes(cutText)) {
        cutText = null;
        cut();
      } else if (!ignoresEnd || !data.equals(terminate)) upstream.write(data);
    });
    client.on('end', () => {
      if (!ignoresEnd) upstream.end();
    });
    client.on('close', () => clients.delete(client));
    upstream.on('data', (data) => client.write(data));
    upstream.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: String(Object.assign(new URL(to), { host: `127.0.0.1:${port}` })),
    cut,
    cutAt(text) {
      cutText = text;
    },
    restore() {
      refuses = false;
    },
    ignoreEnd() {
      ignoresEnd = true;
    },
    async close() {
      for (const socket of all) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
