import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { connect as secure } from 'node:tls';
import { headerOf, localHeader } from '../../orchestrator/test/proxy-header.ts';
import type { CuttingProxy } from '../cutting-proxy.ts';

/**
 * Address from which the balancer connects. Replicas expect the PROXY protocol header only from this address, so that
 * other programs can connect without one.
 */
export const balancerAddress = '127.0.0.2';

/** Milliseconds between two health checks of a replica. */
const checkMs = 1_000;
/** Timeout for a health check or a connection to a replica. */
const timeoutMs = 2_000;
/** Number of failed health checks in a row after which a replica gets no connections, and loses those that it has. */
const fall = 2;

interface Target {
  readonly agents: CuttingProxy;
  readonly api: CuttingProxy;
  /** Port of the edge `api`, for health checks. */
  readonly checkPort: number;
  failures: number;
}

/**
 * A TCP balancer with PROXY protocol 2, like HAProxy with `check`, `option redispatch`, and
 * `on-marked-down shutdown-sessions`. Passes each connection to the next replica that is ready.
 */
export class ProxyBalancer {
  readonly #targets: Target[];
  readonly #servers: Server[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #near = new Set<Socket>();
  #next = 0;
  #clients = 0;

  constructor(targets: readonly Omit<Target, 'failures'>[]) {
    this.#targets = targets.map((target) => ({ ...target, failures: 0 }));
    this.#timer = setInterval(() => this.#targets.forEach((target) => void this.#check(target)), checkMs);
  }

  /** Accepts connections for one of the services. @returns the port on 127.0.0.1 */
  async listen(service: 'agents' | 'api'): Promise<number> {
    const server = createServer({ pauseOnConnect: true }, (near) => void this.#pass(near, service));
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as { port: number }).port;
  }

  end(): void {
    clearInterval(this.#timer);
    for (const server of this.#servers) server.close();
    for (const socket of this.#near) socket.destroy();
  }

  async #pass(near: Socket, service: 'agents' | 'api'): Promise<void> {
    this.#near.add(near);
    near.on('error', () => {});
    near.on('close', () => this.#near.delete(near));
    // Each connection has its own client address, because replicas limit the connections from one address.
    const number = ++this.#clients;
    const first = headerOf(`10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`, 40_000);
    const from = this.#next++;
    for (let tried = 0; tried < this.#targets.length; tried++) {
      const target = this.#targets[(from + tried) % this.#targets.length]!;
      if (target.failures < fall && (await target[service].join(near, { first, timeoutMs }))) return;
    }
    near.resetAndDestroy();
  }

  async #check(target: Target): Promise<void> {
    const isReady = await readiness(target.checkPort);
    target.failures = isReady ? 0 : target.failures + 1;
    if (target.failures !== fall) return;
    target.agents.drop();
    target.api.drop();
  }
}

/** Reports whether `GET /readyz` answers 200 in time. */
function readiness(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const raw = dial(port, '127.0.0.1');
    const end = (isReady: boolean) => {
      clearTimeout(timer);
      raw.destroy();
      resolve(isReady);
    };
    const timer = setTimeout(end, timeoutMs, false);
    raw.on('error', () => end(false));
    raw.on('close', () => end(false));
    raw.once('connect', () => {
      raw.write(localHeader());
      const socket = secure({ socket: raw, rejectUnauthorized: false });
      socket.on('error', () => end(false));
      socket.once('data', (answer: Buffer) => end(answer.toString('latin1').startsWith('HTTP/1.1 200')));
      socket.write('GET /readyz HTTP/1.1\r\nhost: balancer\r\nconnection: close\r\n\r\n');
    });
  });
}
