import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { ip, links } from './ip.ts';
import { machineName, owner } from './leftovers.ts';

/** Maximum number of bridges, and therefore of concurrent test runs. Creating a bridge reserves its number. */
const numbers = 100;

/**
 * The bridge of a test run, with an address range from 10.130.0.0/24 to 10.229.0.0/24. This machine has the address .1.
 * Test hosts can reach only each other and this machine.
 */
export class Bridge {
  readonly #name: string;
  readonly #range: string;
  /** The machines' links, by network namespace. */
  readonly #cables = new Map<string, string>();
  #last = 1;

  constructor() {
    const number = takeNumber();
    this.#name = `mubr${number}`;
    this.#range = `10.${130 + number}.0`;
    ip('link', 'set', this.#name, 'alias', `muster-hosts-${owner}`);
    ip('addr', 'add', `${this.#range}.1/24`, 'brd', '+', 'dev', this.#name);
    // Otherwise, this machine also answers for its other addresses, which test hosts may use among themselves.
    writeFileSync(`/proc/sys/net/ipv4/conf/${this.#name}/arp_ignore`, '1');
    ip('link', 'set', this.#name, 'up');
  }

  /** This machine's address on the bridge. */
  get address(): string {
    return `${this.#range}.1`;
  }

  /** Creates a machine's network namespace and connects it to the bridge. @returns its address */
  join(machine: string): string {
    const namespace = machineName(machine);
    const number = ++this.#last;
    const cable = `${this.#name}-${number}`;
    const address = `${this.#range}.${number}`;
    ip('netns', 'add', namespace);
    ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    ip('link', 'set', cable, 'master', this.#name, 'up');
    this.#cables.set(namespace, cable);
    ip('-n', namespace, 'addr', 'add', `${address}/24`, 'brd', '+', 'dev', 'eth0');
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    return address;
  }

  /** Removes a machine from the network permanently. */
  leave(machine: string): void {
    const namespace = machineName(machine);
    const cable = this.#cables.get(namespace);
    if (cable !== undefined) this.#remove(namespace, cable);
  }

  end(): void {
    for (const [namespace, cable] of this.#cables) this.#remove(namespace, cable);
    ip('link', 'delete', this.#name);
  }

  /**
   * Deletes the link before the namespace. The kernel deletes the links of a namespace asynchronously, so the next
   * bridge with this number could not reuse their names.
   */
  #remove(namespace: string, cable: string): void {
    ip('link', 'delete', cable);
    ip('netns', 'delete', namespace);
    this.#cables.delete(namespace);
  }
}

function takeNumber(): number {
  const routes = ip('route', 'show');
  let reason: unknown = new Error('all address ranges are in use');
  for (let attempt = 0; attempt < numbers; attempt++) {
    const number = (process.pid + attempt) % numbers;
    if (routes.includes(`10.${130 + number}.`)) continue;
    try {
      ip('link', 'add', `mubr${number}`, 'type', 'bridge', 'forward_delay', '0');
      return number;
    } catch (error) {
      reason = error;
      if (!links().some(({ ifname }) => ifname === `mubr${number}`)) throw error;
    }
  }
  throw new Error('cannot create a network for the test hosts', { cause: reason });
}

/** Reports whether a port accepts a connection within 700 ms. */
export const reaches = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 700 });
    const end = (reached: boolean) => {
      socket.destroy();
      resolve(reached);
    };
    socket.on('connect', () => end(true));
    socket.on('timeout', () => end(false));
    socket.on('error', () => end(false));
  });
