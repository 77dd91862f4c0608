import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

const info = { server_id: 'fake', version: '2.9.10', proto: 1, max_payload: 1_048_576, headers: true };

/** The behavior of a fake server on a connection. By default, it accepts all clients and answers pings. */
export interface FakeBehavior {
  /** Fields of its INFO message; null to send none. */
  readonly info?: object | null;
  /** Handles a line from the client. @returns whether the server also handles it as usual */
  line?(line: string, socket: Socket): boolean;
}

/** A NATS server that can misbehave. It supports only the part of the protocol that clients need to connect. */
export class FakeNats {
  /** Behavior on the next connection. */
  behavior: FakeBehavior = {};
  /** All connections with the received lines, oldest connection first. */
  readonly connections: { readonly socket: Socket; readonly lines: string[]; isClosed: boolean }[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async start(): Promise<FakeNats> {
    const fake = new FakeNats();
    fake.#server.listen(0, '127.0.0.1');
    await once(fake.#server, 'listening');
    return fake;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    for (const { socket } of this.connections) socket.destroy();
  }

  #accept(socket: Socket): void {
    const { behavior } = this;
    const connection = { socket, lines: [] as string[], isClosed: false };
    this.connections.push(connection);
    socket.on('error', () => {}).on('close', () => (connection.isClosed = true));
    if (behavior.info !== null) socket.write(`INFO ${JSON.stringify({ ...info, ...behavior.info })}\r\n`);
    let text = '';
    socket.on('data', (data: Buffer) => {
      const lines = (text + data.toString('latin1')).split('\r\n');
      text = lines.pop()!;
      for (const line of lines) {
        connection.lines.push(line);
        if (behavior.line?.(line, socket) !== false && line === 'PING') socket.write('PONG\r\n');
      }
    });
  }
}
