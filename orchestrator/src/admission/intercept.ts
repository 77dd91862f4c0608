import type { Server, Socket } from 'node:net';

/** Returns an identifier for a connection. The identifier is the same for the sockets below and above TLS. */
export const peerOf = (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${socket.remoteAddress}|${socket.remotePort}`;

/**
 * For each new socket, calls `decide` instead of the server.
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
