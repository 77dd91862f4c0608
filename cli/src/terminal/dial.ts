import type { IncomingMessage } from 'node:http';
import { type ApiError, apiErrorOf } from '@muster/protocol/client';
import { WebSocket } from 'ws';
import { CliError } from '../exit.ts';
import { type AgentFor, unreachable } from '../transport/client.ts';
import type { Wire, WireEvents } from './live.ts';

/** Maximum message size in bytes. The largest message is the recent screen. */
const largestMessage = 16 * 1024 * 1024;
const timeout = 10_000;
/** Maximum size of a refusal in bytes. */
const largestRefusal = 64 * 1024;

/**
 * Opens a WebSocket to an orchestrator, with the same certificate check as for requests.
 * @returns a paused connection
 * @throws CliError if there is no response; ApiError if the orchestrator refuses
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
      // An error closes the socket, and the `close` handler reports it.
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

/** Returns the orchestrator's refusal even if its body did not arrive completely. */
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
    // The body is incomplete and therefore not a problem document.
  }
  clearTimeout(late);
  const text = Buffer.concat(pieces).toString('utf8');
  return apiErrorOf(response.statusCode ?? 0, text, response.headers['retry-after'] ?? null);
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
