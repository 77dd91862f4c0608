import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { addressText } from '@muster/protocol/agent-address';
import { type Announcer, type DatagramFor, type Delivery, UnknownHostError } from '../domain/agents/discovery.ts';
import { type BroadcastRoute, broadcastRoutes, isMulticastOrUnspecified } from './broadcast-routes.ts';

/** Maximum number of addresses used per host name; further addresses are ignored. */
const maxAddresses = 8;
const sendTimeoutMs = 5_000;

/** Creates an announcer. Each announcement is sent from a new socket that receives no data. */
export function createAnnouncer(): Announcer {
  return {
    async broadcast(port, datagramFor) {
      const routes = broadcastRoutes(networkInterfaces());
      const deliveries = await Promise.all(routes.map((route) => broadcastOn(route, port, datagramFor)));
      return deliveries.filter((delivery) => delivery !== null);
    },

    async send(host, port, datagramFor) {
      let addresses: Address[];
      try {
        addresses = await resolve(host);
      } catch (error) {
        if (error instanceof UnknownHostError) throw error;
        // The name server is unavailable, possibly only temporarily.
        return [{ to: addressText({ host, port }), error: (error as Error).message }];
      }
      return Promise.all(addresses.slice(0, maxAddresses).map((each) => sendTo(each, port, datagramFor)));
    },
  };
}

interface Address {
  address: string;
  family: 'udp4' | 'udp6';
}

/** @throws UnknownHostError if the name does not exist or has no usable address; Error if the name server fails */
async function resolve(host: string): Promise<Address[]> {
  const found = await lookup(host, { all: true }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOTFOUND' ? new UnknownHostError(`the host ${host} cannot be resolved`) : error;
  });
  const addresses = found.map(({ address, family }): Address => ({ address, family: family === 6 ? 'udp6' : 'udp4' }));
  const usable = addresses.filter(({ address }) => !isMulticastOrUnspecified(address));
  if (usable.length === 0) throw new UnknownHostError(`the host ${host} has only multicast or unspecified addresses`);
  return usable;
}

async function broadcastOn(route: BroadcastRoute, port: number, datagramFor: DatagramFor): Promise<Delivery | null> {
  const datagram = datagramFor(route.from);
  if (datagram === null) return null;
  return withSocket(route.family, addressText({ host: route.to, port }), async (socket) => {
    // Binding selects the interface, regardless of the routing table.
    await bind(socket, route.family === 'udp4' ? (route.from ?? undefined) : undefined);
    if (route.family === 'udp4') socket.setBroadcast(true);
    else socket.setMulticastInterface(`::%${route.interface}`);
    await sent(socket, datagram, port, route.to);
  });
}

function sendTo({ address, family }: Address, port: number, datagramFor: DatagramFor): Promise<Delivery> {
  return withSocket(family, addressText({ host: address, port }), async (socket) => {
    await bind(socket, undefined);
    // Required for broadcast addresses.
    if (family === 'udp4') socket.setBroadcast(true);
    await new Promise<void>((resolve, reject) => {
      // `connect` determines the local address for this target.
      socket.connect(port, address, ((error?: Error) => (error ? reject(error) : resolve())) as () => void);
    });
    const datagram = datagramFor(socket.address().address);
    if (datagram !== null) await sent(socket, datagram);
  });
}

const bind = (socket: Socket, address: string | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ port: 0, exclusive: true, ...(address === undefined ? {} : { address }) }, () => resolve());
  });

function sent(socket: Socket, datagram: Uint8Array, port?: number, address?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null) => (error ? reject(error) : resolve());
    if (port === undefined) socket.send(datagram, done);
    else socket.send(datagram, port, address, done);
  });
}

async function withSocket(
  family: 'udp4' | 'udp6',
  to: string,
  use: (socket: Socket) => Promise<void>,
): Promise<Delivery> {
  const socket = createSocket({ type: family });
  // Without a listener, an ICMP error for an earlier datagram would be thrown.
  socket.on('error', () => {});
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the datagram was not sent within ${sendTimeoutMs / 1000} s`)),
      sendTimeoutMs,
    );
  });
  try {
    await Promise.race([use(socket), late]);
    return { to, error: null };
  } catch (error) {
    return { to, error: (error as Error).message };
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}
