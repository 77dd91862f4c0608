import type { Server, Socket } from 'node:net';

/** Tells two sockets of one server apart; the same before and after TLS. */
export const peerOf = (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${socket.remoteAddress}|${socket.remotePort}`;

/**
 * Puts `decide` in front of what a server does with a new socket.
 * @returns lets the server go on with a socket
 */
export function interceptConnections(server: Server, decide: (socket: Socket) => void): (socket: Socket) => void {
  const before = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', decide);
  return (socket) => {
    for (const listener of before) listener.call(server, socket);
  };
}
