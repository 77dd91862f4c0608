import { WebSocket } from 'ws';
import { type AgentFor, unreachable } from '../client.ts';
import { CliError, exits } from '../exit.ts';
import type { Wire, WireEvents } from './live.ts';

/** More of one message is none of an orchestrator's: the recent screen is the largest there is. */
const largestMessage = 16 * 1024 * 1024;
const timeout = 10_000;

/**
 * Opens a WebSocket to an orchestrator, trusted as its requests are.
 * @returns one that is paused
 * @throws CliError when nobody answers there, or refuses
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
      request.destroy();
      const status = response.statusCode ?? 0;
      reject(
        new CliError(
          exits.unreachable,
          'unreachable',
          `the orchestrator did not open the terminal: it answered ${status}`,
        ),
      );
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
