import type { ClientRequest, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { errnoOf } from './failure.ts';

/** Asking a service whether it is there. Nothing here throws: what went wrong is the answer. */

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection is refused',
  ECONNRESET: 'the connection was cut',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host could not be looked up',
  ETIMEDOUT: 'there was no answer',
};

function reasonOf(error: Error): string {
  // One for each address that was tried.
  const first = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return reasons[errnoOf(first) ?? ''] ?? first.message;
}

/**
 * Sends one GET and waits for the status. No redirect is followed, no proxy is used, no body is read, and a certificate
 * that does not verify is an error.
 * @returns the status, or why there is none
 */
export async function httpStatus(url: string, signal: AbortSignal): Promise<number | string> {
  const { request } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  return new Promise((resolve) => {
    let asked: ClientRequest | null = null;
    const done = (answer: number | string): void => {
      resolve(answer);
      asked?.destroy();
    };
    try {
      const headers = { 'user-agent': 'muster-agent', connection: 'close' };
      asked = request(url, { agent: false, headers, signal }, (response: IncomingMessage) => {
        response.on('error', () => {});
        done(response.statusCode ?? 'the answer has no status');
      });
      asked.on('error', (error) => done(signal.aborted ? 'there was no answer' : reasonOf(error)));
      asked.end();
    } catch (error) {
      done((error as Error).message);
    }
  });
}

/** @returns null when the port accepts a connection, else why it does not */
export function tcpRefusal(host: string, port: number, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const done = (answer: string | null): void => {
      signal.removeEventListener('abort', abort);
      resolve(answer);
      socket.destroy();
    };
    const abort = (): void => done('there was no answer');
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort);
    socket.on('error', (error) => done(reasonOf(error)));
    socket.once('connect', () => done(null));
  });
}
