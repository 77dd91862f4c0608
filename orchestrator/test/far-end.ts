import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** A request that the server received. */
export interface Arrived {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
  bytes: Buffer;
}

/** The server's response: a status, or a function that sends the response. */
export type Behaviour = number | ((response: ServerResponse, arrived: Arrived, socket: Socket) => void);

/** A real server on the loopback interface that records requests and sends the responses that the test specifies. */
export async function farEnd(behaviour: Behaviour = 200) {
  const arrived: Arrived[] = [];
  const sockets = new Set<Socket>();
  let now = behaviour;
  let waiting: { count: number; wake: () => void }[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    try {
      for await (const piece of request) pieces.push(piece);
    } catch {
      return;
    }
    const bytes = Buffer.concat(pieces);
    const body = bytes.toString();
    const { method = '', url: path = '', headers } = request;
    const one = { method, path, headers, body, bytes };
    arrived.push(one);
    if (typeof now === 'number') response.writeHead(now).end('request received');
    else now(response, one, request.socket);
    for (const each of waiting.filter(({ count }) => arrived.length >= count)) each.wake();
    waiting = waiting.filter(({ count }) => arrived.length < count);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    arrived,
    behave: (next: Behaviour) => {
      now = next;
    },
    /** Resolves when `count` requests have arrived since startup. */
    seen: (count: number) =>
      arrived.length >= count
        ? Promise.resolve()
        : new Promise<void>((wake) => {
            waiting.push({ count, wake });
          }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
export type FarEnd = Awaited<ReturnType<typeof farEnd>>;
