import { isIPv6, type Server, type Socket } from 'node:net';
import type { ProxiedClient } from './proxy-protocol.ts';

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/** Identifiers of the connections whose sockets have the address of a balancer's client. */
const peers = new WeakMap<Peer, string>();

/**
 * Returns an identifier for a connection. The identifier is the same for the sockets below and above TLS. It is unique
 * among open connections, even if balancers state the same client for two of them.
 */
export const peerOf = (socket: Peer): string => peers.get(socket) ?? `${socket.remoteAddress}|${socket.remotePort}`;

/** Replaces a socket's remote address with that of the balancer's client. */
export function setClient(socket: Socket, { address, port }: ProxiedClient): void {
  peers.set(socket, peerOf(socket));
  Object.defineProperties(socket, {
    remoteAddress: { value: address },
    remotePort: { value: port },
    remoteFamily: { value: isIPv6(address) ? 'IPv6' : 'IPv4' },
  });
}

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
