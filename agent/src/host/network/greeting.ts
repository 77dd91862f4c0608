import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../../../lib/src/clock.ts';

/** Milliseconds for one connection, including its greeting. */
const attemptMs = 3_000;
/** Maximum size of a greeting to keep, in bytes. */
const maxGreeting = 1_024;

const maxAddresses = 8;

/** A server's response to a new connection. */
export type Greeting =
  | { readonly is: 'refused'; readonly why: string }
  /** `text`: the first bytes that the server sent, read as UTF-8. */
  | { readonly is: 'connected'; readonly text: string };

/**
 * Connects to a port on this machine, on each of its addresses until one of them accepts the connection.
 * @param banner start of the text to wait for; null to end as soon as the connection is open
 * @param limitMs milliseconds for all addresses together
 */
export async function greetingOf(
  port: number,
  banner: string | null,
  limitMs: number,
  clock: Clock,
): Promise<Greeting> {
  const deadline = clock.monotonic() + limitMs;
  let last: Greeting = { is: 'refused', why: 'the machine has no address' };
  for (const host of addresses()) {
    const left = deadline - clock.monotonic();
    if (left <= 0) break;
    const greeting = await connectTo(host, port, banner, Math.min(attemptMs, left), clock);
    if (greeting.is === 'connected' && (banner === null || greeting.text.startsWith(banner))) return greeting;
    if (greeting.is === 'connected' || last.is === 'refused') last = greeting;
  }
  return last;
}

/** Returns this machine's addresses, loopback addresses first. */
function addresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const usable = all.filter(({ address }) => !address.startsWith('fe80:'));
  usable.sort((a, b) => Number(b.internal) - Number(a.internal));
  return usable.slice(0, maxAddresses).map(({ address }) => address);
}

function connectTo(
  host: string,
  port: number,
  banner: string | null,
  limitMs: number,
  clock: Clock,
): Promise<Greeting> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let isConnected = false;
    let received: Buffer = Buffer.alloc(0);
    const end = (why: string) => {
      cancel();
      socket.destroy();
      resolve(isConnected ? { is: 'connected', text: received.toString() } : { is: 'refused', why });
    };
    const cancel = clock.after(limitMs, () => end('no answer'));
    socket.once('connect', () => {
      isConnected = true;
      if (banner === null) end('');
    });
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]).subarray(0, maxGreeting);
      if (banner !== null && received.length >= Math.min(Buffer.byteLength(banner), maxGreeting)) end('');
    });
    socket.once('end', () => end('it closed the connection'));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}
