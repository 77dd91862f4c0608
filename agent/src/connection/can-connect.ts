import { connect, type LookupFunction } from 'node:net';
import type { Clock } from '../../../lib/src/clock.ts';

/** Milliseconds for one attempt. The kernel sends SYNs after 0, 1, and 3 s. */
const attemptMs = 4_000;

/** Reports whether a new TCP connection to an address can be opened. Sends nothing over it. */
export function canConnect(
  { host, port }: { host: string; port: number },
  clock: Clock,
  lookup?: LookupFunction,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...(lookup === undefined ? {} : { lookup }) });
    const end = (connected: boolean) => {
      cancel();
      socket.destroy();
      resolve(connected);
    };
    const cancel = clock.after(attemptMs, () => end(false));
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
