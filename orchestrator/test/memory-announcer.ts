import { type Announcer, type DatagramFor, type Delivery, UnknownHostError } from '../src/domain/agents/discovery.ts';

/** Records datagrams instead of sending them. Simulates a machine with two networks. */
export class MemoryAnnouncer implements Announcer {
  readonly sent: { to: string; datagram: Uint8Array }[] = [];
  /** Errors to simulate when sending, by address. */
  readonly failing = new Map<string, string>();
  networks = ['192.0.2.255', '198.51.100.255'];

  broadcast(port: number, datagramFor: DatagramFor): Promise<Delivery[]> {
    return Promise.all(this.networks.map((address) => this.deliver(`${address}:${port}`, '192.0.2.1', datagramFor)));
  }

  async send(host: string, port: number, datagramFor: DatagramFor): Promise<Delivery[]> {
    if (host === 'nowhere.example') throw new UnknownHostError('the host nowhere.example cannot be resolved');
    return [await this.deliver(`${host}:${port}`, '192.0.2.1', datagramFor)];
  }

  private async deliver(to: string, from: string, datagramFor: DatagramFor): Promise<Delivery> {
    const error = this.failing.get(to) ?? null;
    if (error === null) this.sent.push({ to, datagram: datagramFor(from)! });
    return { to, error };
  }
}
