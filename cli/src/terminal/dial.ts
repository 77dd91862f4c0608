import type { IncomingMessage } from 'node:http';
import { type ApiError, problemOf } from '@muster/protocol/client';
import { WebSocket } from 'ws';
import { CliError } from '../exit.ts';
import { type AgentFor, unreachable } from '../transport/client.ts';
import type { Wire, WireEvents } from './live.ts';

/** More of one message is none of an orchestrator's: the recent screen is the largest there is. */
const largestMessage = 16 * 1024 * 1024;
const timeout = 10_000;
/** No refusal is longer. */
const largestRefusal = 64 * 1024;

/**
 * Opens a WebSocket to an orchestrator, trusted as its requests are.
 * @returns one that is paused
 * @throws CliError when nobody answers there; ApiError when it is refused
 */
export function dialTerminal(url: URL, agentFor: AgentFor, events: WireEvents): Promise<Wire> {
  const address = new URL(url);
  address.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(address, {
      agent: agentFor(url),
      handshakeTimeout: timeout,
      maxPayload: largestMessage,
      perMessageDeflate: false,
      followRedirects: false,
    });
    let wasOpen = false;
    const refused = (error: Error) => reject(error instanceof CliError ? error : unreachable(url, error));
    socket.on('error', refused);
    socket.once('unexpected-response', (request, response) => {
      void refusalOf(response).then((refusal) => {
        reject(refusal);
        request.destroy();
      });
    });
    socket.once('open', () => {
      wasOpen = true;
      socket.off('error', refused);
      // A fault of the connection closes it, and that is told below.
      socket.on('error', () => {});
      socket.pause();
      resolve(wireOf(socket));
    });
    socket.on('message', (data: Buffer, isBinary) => {
      events.alive();
      if (isBinary) events.bytes(data);
      else events.text(data.toString('utf8'));
    });
    socket.on('ping', () => events.alive());
    socket.on('pong', () => {
      events.alive();
      events.answered();
    });
    socket.on('close', () => {
      if (wasOpen) events.closed();
    });
  });
}

/** In the orchestrator's words, as far as they came. */
async function refusalOf(response: IncomingMessage): Promise<ApiError> {
  const pieces: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => response.destroy(), timeout);
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      pieces.push(piece);
      size += piece.length;
      if (size > largestRefusal) break;
    }
  } catch {
    // Cut off: what did come is no problem document then.
  }
  clearTimeout(late);
  const text = Buffer.concat(pieces).toString('utf8');
  return problemOf(response.statusCode ?? 0, text, response.headers['retry-after'] ?? null);
}

function wireOf(socket: WebSocket): Wire {
  const isOpen = () => socket.readyState === WebSocket.OPEN;
  return {
    send: (data, sent) => {
      if (isOpen()) socket.send(data, { binary: typeof data !== 'string' }, () => sent?.());
    },
    get unsent() {
      return socket.bufferedAmount;
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    ping: () => {
      if (isOpen()) socket.ping();
    },
    cut: () => socket.terminate(),
  };
}
