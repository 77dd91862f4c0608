import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** The connection of an upgrade request. */
export interface UpgradeConnection {
  readonly socket: Socket;
  /** Bytes that were received after the request. */
  readonly head: Buffer;
}

/**
 * Routes upgrade requests like normal requests, so that the same hooks apply to them. An upgrade request waits until
 * the responses to all preceding requests on its connection are complete.
 * @returns a function that returns the connection of an upgrade request, or undefined for other requests. The caller
 * removes {@link ignoreError} from the socket before it upgrades.
 */
export function routeUpgradeRequests(
  app: FastifyInstance,
): (request: IncomingMessage) => UpgradeConnection | undefined {
  const connections = new WeakMap<IncomingMessage, UpgradeConnection>();
  /** The last response on each connection, if it is not yet complete. */
  const answering = new WeakMap<Socket, ServerResponse>();
  app.server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    answering.set(socket, response);
    response.once('close', () => {
      if (answering.get(socket) === response) answering.delete(socket);
    });
  });
  app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    connections.set(request, { socket, head });
    // Without a listener, an error would crash the process. `ws` adds its own listener after the upgrade.
    socket.on('error', ignoreError);
    const before = answering.get(socket);
    if (before === undefined) route(app, request, socket);
    else before.once('close', () => route(app, request, socket));
  });
  return (request) => connections.get(request);
}

export const ignoreError = (): void => {};

function route(app: FastifyInstance, request: IncomingMessage, socket: Socket): void {
  if (socket.destroyed) return;
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  response.shouldKeepAlive = false;
  // The upgrade was refused, and no other request can follow on this connection.
  response.once('finish', () => socket.destroySoon());
  app.routing(request, response);
}
