import type { ClientRequest, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { errnoOf } from './failure.ts';

/** Checks whether a service responds. Never throws; the result contains errors. */

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be resolved',
  ETIMEDOUT: 'there was no response',
};

function reasonOf(error: Error): string {
  // An AggregateError contains one error for each address that was tried.
  const first = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return reasons[errnoOf(first) ?? ''] ?? first.message;
}

/**
 * Sends one GET and waits for the status. Does not follow redirects, use a proxy, or read the body. An unverified
 * certificate is an error.
 * @returns the status code, or the reason why there is none
 */
export async function httpStatus(url: string, signal: AbortSignal): Promise<number | string> {
  const { request } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  return new Promise((resolve) => {
    let sent: ClientRequest | null = null;
    const done = (answer: number | string): void => {
      resolve(answer);
      sent?.destroy();
    };
    try {
      const headers = { 'user-agent': 'muster-agent', connection: 'close' };
      sent = request(url, { agent: false, headers, signal }, (response: IncomingMessage) => {
        response.on('error', () => {});
        done(response.statusCode ?? 'the response has no status');
      });
      sent.on('error', (error) => done(signal.aborted ? 'there was no response' : reasonOf(error)));
      sent.end();
    } catch (error) {
      done((error as Error).message);
    }
  });
}

/** Connects to a TCP port. Returns null if the port accepts the connection; otherwise, the reason why it does not. */
export function tcpRefusal(host: string, port: number, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const done = (answer: string | null): void => {
      signal.removeEventListener('abort', abort);
      resolve(answer);
      socket.destroy();
    };
    const abort = (): void => done('there was no response');
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort);
    socket.on('error', (error) => done(reasonOf(error)));
    socket.once('connect', () => done(null));
  });
}
