import type { IncomingMessage } from 'node:http';
import { MusterError } from '@muster/protocol';
import { apiPrefix } from '@muster/protocol/http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WebSocketServer } from 'ws';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import type { TerminalConnections } from '../../domain/terminals/terminal-client.ts';
import { RefusedRequest } from '../server/problem.ts';
import type { ParsedQuery } from '../server/query.ts';
import type { TicketRate } from '../server/rate.ts';
import { terminalSocketLimits } from './terminal-peer.ts';
import { TerminalPeers } from './terminal-peers.ts';
import { ignoreError, routeUpgradeRequests } from './upgrade-requests.ts';

export interface TerminalSocketOptions {
  readonly connections: TerminalConnections;
  readonly clock: Clock;
  readonly log: Log;
  readonly rate: TicketRate;
  /** Maximum number of open terminal sockets, so that some connections remain for requests. */
  readonly maxOpen: number;
  /** Called after a socket has opened. */
  readonly opened: (request: FastifyRequest, mode: string, ms: number) => void;
}

const address = new RegExp(`^${apiPrefix}/terminal/session/[^/?]+/ws(\\?|$)`);

/** Reports whether to upgrade a request to a WebSocket. All other upgrade requests are handled as normal requests. */
export const isTerminalUpgrade = ({ url, headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket' && address.test(url ?? '');

/**
 * Serves terminal WebSockets on the API server. Upgrade requests run the same hooks as other requests, so that refusals
 * produce the same responses, log lines, and counts.
 * @returns a function that closes open sockets
 */
export function registerTerminalSockets(app: FastifyInstance, options: TerminalSocketOptions): () => Promise<void> {
  const { connections, clock, log, rate, maxOpen } = options;
  const connectionOf = routeUpgradeRequests(app);
  const peers = new TerminalPeers(clock, log);
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: terminalSocketLimits.frameBytes,
    maxFragments: 64,
    maxBufferedChunks: 1024,
    clientTracking: false,
    closeTimeout: terminalSocketLimits.closeTimeoutMs,
  } as ConstructorParameters<typeof WebSocketServer>[0]);

  async function upgrade(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const upgraded = connectionOf(request.raw);
    if (upgraded === undefined)
      throw new RefusedRequest('upgrade_required', undefined, { upgrade: 'websocket', connection: 'upgrade' });
    const startedAt = clock.monotonic();
    await rate.consume(request.ip);
    requireHandshake(request.raw);
    if (peers.size >= maxOpen)
      throw new MusterError('terminal_limit', `${maxOpen} connections to terminals are open, which is the maximum`);
    const { values, faults } = request.query as ParsedQuery;
    const ticket = faults.length === 0 ? values.ticket : undefined;
    const { session_id } = request.params as { session_id: string };
    const { socket, head } = upgraded;
    // A client that has already disconnected must not consume its ticket.
    if (socket.destroyed) return reply.hijack();
    if (typeof ticket !== 'string') throw new MusterError('ticket_invalid');
    const peer = peers.create();
    // Counts the peer while its ticket is being redeemed.
    peers.add(peer);
    const events = await connections.connect(ticket, session_id, peer).catch((error: unknown) => {
      peer.leave();
      throw error;
    });
    if (events === null) {
      peer.leave();
      throw new MusterError('ticket_invalid');
    }
    rate.giveBack(request.ip);
    reply.hijack();
    reply.raw.detachSocket(socket);
    let opened = false;
    sockets.handleUpgrade(request.raw, socket, head, (ws) => {
      opened = true;
      socket.removeListener('error', ignoreError);
      // Keep-alive detects broken connections even while no pings are sent.
      socket.setKeepAlive(true, terminalSocketLimits.pingMs);
      peer.attach(ws, events);
    });
    if (opened) options.opened(request, events.mode, clock.monotonic() - startedAt);
    else peer.leave(events);
    return reply;
  }

  app.get(`${apiPrefix}/terminal/session/:session_id/ws`, { exposeHeadRoute: false }, upgrade);

  return () => peers.interrupt();
}

/**
 * Refuses an invalid handshake with a problem document. `ws` would refuse it without a problem document, and only after
 * the ticket has been consumed.
 */
function requireHandshake({ headers }: IncomingMessage): void {
  const key = headers['sec-websocket-key'];
  if (headers['sec-websocket-version'] !== '13' || key === undefined || !/^[+/0-9A-Za-z]{22}==$/.test(key))
    throw new RefusedRequest('malformed_request', 'This is not a WebSocket version 13 handshake.', {
      'sec-websocket-version': '13',
    });
}
