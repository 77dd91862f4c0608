import type { Server, Socket } from 'node:net';

/** Identifies a socket of a server; the same before and after TLS. */
export const peerOf = (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${socket.remoteAddress}|${socket.remotePort}`;

/**
 * Runs `decide` before a server handles a new socket.
 * @returns a function that passes a socket on to the server
 */
export function interceptConnections(server: Server, decide: (socket: Socket) => void): (socket: Socket) => void {
  const before = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', decide);
  return (socket) => {
    for (const listener of before) listener.call(server, socket);
  };
}
