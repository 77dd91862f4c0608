import { MusterError } from '@muster/protocol';
import { encodeAnnouncement, isAnnounceableHost } from '@muster/protocol/wire';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';

/**
 * Announces this orchestrator by datagram to agents that do not know the address of an orchestrator yet. Agents never
 * reply.
 */

/**
 * Builds the datagram to send from a local address. Pass null for an address at which agents on other machines cannot
 * reach the orchestrator.
 * @returns null if there is no address to announce
 */
export type DatagramFor = (localAddress: string | null) => Uint8Array | null;

export interface Delivery {
  /** `host:port` */
  to: string;
  /** Null if the datagram was sent. */
  error: string | null;
}

/** Sends datagrams. Never rejects on a network error; each delivery has its own error. */
export interface Announcer {
  /** Sends to the broadcast address of each network that this machine is on. */
  broadcast(port: number, datagramFor: DatagramFor): Promise<Delivery[]>;
  /**
   * Sends to every address of a host.
   * @throws UnknownHostError
   */
  send(host: string, port: number, datagramFor: DatagramFor): Promise<Delivery[]>;
}

export class UnknownHostError extends Error {}

export interface DiscoveryOptions {
  announcer: Announcer;
  /** UDP port on which agents listen for announcements. */
  port: number;
  /** Address that agents dial. A null host means the datagram's source address. */
  agents: () => { host: string | null; port: number };
  /** The orchestrator key, 32 bytes. */
  publicKey: Uint8Array;
  /** Signs an encoded announcement. Returns 64 bytes. */
  sign: (encoded: Uint8Array) => Uint8Array;
}

export type Discover = (actor: Actor, target?: string) => Promise<{ sent_to: string[] }>;

export function createDiscovery(context: Context, options: DiscoveryOptions): Discover {
  const { announcer } = options;
  const datagramFor: DatagramFor = (localAddress) => {
    const agents = options.agents();
    const host = agents.host ?? localAddress;
    if (host === null) return null;
    if (!isAnnounceableHost(host))
      throw new Error(
        `agents on other machines cannot reach ${host}: set advertised_host to an address that they can reach`,
      );
    const encoded = encodeAnnouncement({
      host,
      port: agents.port,
      orchestratorKey: options.publicKey,
      sentAt: seconds(context.now()),
      nonce: context.randomBytes(16).subarray(0, 16),
    });
    return Buffer.concat([encoded, options.sign(encoded)]);
  };

  return async (asker, target) => {
    const actor = await stillSignedIn(context, asker);
    const deliveries =
      target === undefined
        ? await announcer.broadcast(options.port, datagramFor)
        : await sendTo(announcer, parseTarget(target), datagramFor);
    const sentTo = deliveries.filter(({ error }) => error === null).map(({ to }) => to);
    const failed = deliveries.filter(({ error }) => error !== null);
    if (failed.length > 0) context.log.warn({ failed, sent_to: sentTo }, 'failed to send some announcements');
    if (sentTo.length === 0)
      throw new MusterError(
        'discovery_failed',
        failed.length > 0
          ? `failed to send any announcement: ${failed
              .slice(0, 8)
              .map(({ to, error }) => `${to}: ${error}`)
              .join('; ')}`
          : 'this machine has no network to broadcast on; specify a target as host:port',
      );
    await context.db.write({
      name: 'discovery/sent',
      statements: [
        audited(context, {
          type: 'discovery.sent',
          actor,
          target: { type: 'discovery', id: '', name: target ?? 'broadcast' },
          summary: `announced this orchestrator to ${target ?? `${sentTo.length} network${sentTo.length === 1 ? '' : 's'}`}`,
          metadata: { sent_to: sentTo, failed },
        }),
      ],
    });
    return { sent_to: sentTo };
  };
}

const fault = (message: string) =>
  new MusterError('invalid_input', `target ${message}`, [{ path: '/target', message }]);

/**
 * Parses `host:port`, with an IPv6 address in brackets.
 * @throws MusterError invalid_input naming /target
 */
export function parseTarget(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\][]*)\]|([^:[\]]*)):(\d{1,9})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw fault('must be host:port, such as 192.0.2.40:4747 or [2001:db8::40]:4747');
  const port = Number(digits);
  if (port < 1 || port > 65_535) throw fault(`has port ${digits}; a port must be between 1 and 65535`);
  // Omits the interface (`%eth0`) of a link-local address, because it is meaningful only on this machine.
  const [address = '', scope] = host.split('%', 2);
  const isValid =
    bracketed === undefined ? !host.includes('%') : address.includes(':') && /^[\w.-]{1,15}$/.test(scope ?? 'x');
  if (!isValid || !isAnnounceableHost(address))
    throw fault(`has ${JSON.stringify(host)}, which is neither a host name nor an address`);
  return { host, port };
}

async function sendTo(
  announcer: Announcer,
  { host, port }: { host: string; port: number },
  datagramFor: DatagramFor,
): Promise<Delivery[]> {
  try {
    return await announcer.send(host, port, datagramFor);
  } catch (error) {
    if (error instanceof UnknownHostError) throw fault(error.message);
    throw error;
  }
}
