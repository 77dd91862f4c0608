import { randomBytes } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { type AgentMessage, type Hello, type HelloProof, supportedProtocolVersions } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { AttendedClock } from '../admission/attended-clock.ts';
import type { Bus, Hint } from '../bus/bus.ts';
import type { AgentLinks } from '../domain/agent-link/agent-link.ts';
import type { Refusal } from '../domain/agent-link/refusal.ts';
import type { Presence } from '../domain/shared/context.ts';
import type { Shells } from '../domain/terminals/shells.ts';
import type { Identity } from '../identity/identity.ts';
import { ContentSender } from './content-sender.ts';
import { Deadlines } from './deadlines.ts';
import { Dispatcher, sendCancel } from './dispatch.ts';
import { Inbound } from './inbound.ts';
import { defaultGatewayLimits, type GatewayLimits } from './limits.ts';
import { Link, type LinkOwner, type LinkSocket, workFlags } from './link.ts';
import { LocalLinks } from './local-links.ts';
import { AgentPort } from './port/agent-port.ts';
import { RefusedAgents } from './port/refused-agents.ts';
import { LinkRegistry } from './presence.ts';
import { asKnown, Reception } from './reception.ts';
import { TerminalShells } from './terminal-shells.ts';

export interface GatewayOptions {
  identity: Identity;
  links: AgentLinks;
  bus: Bus;
  clock: Clock;
  log: Log;
  /** Returns a random number in [0, 1). Spreads agent reconnects after a drain. */
  random: () => number;
  /** Seconds between samples, sent to agents in the welcome. */
  metricsInterval?: number;
  /** Addresses, as HOST:PORT, that agents may dial in addition to the one they know, sent in the welcome. */
  addresses?: readonly string[];
  limits?: Partial<GatewayLimits>;
  /** Addresses and networks whose connections must begin with a PROXY protocol header. */
  proxyNetworks?: readonly string[];
  /** Needed if other components use the connected agents before the gateway exists. */
  connected?: ConnectedAgents;
}

/** Links to connected agents, and shells on these links. */
export interface ConnectedAgents {
  readonly registry: LinkRegistry;
  readonly shells: TerminalShells;
}

export function createConnectedAgents(clock: Clock, limits: Partial<GatewayLimits> = {}): ConnectedAgents {
  const all = { ...defaultGatewayLimits, ...limits };
  const registry = new LinkRegistry(clock, all);
  return { registry, shells: new TerminalShells({ registry, clock, limits: all }) };
}

export interface Gateway {
  /**
   * Accepts agents, for the first time or after `stopAccepting`.
   * @param port 0 for any free port
   * @returns the actual port
   */
  listen(host: string, port: number): Promise<number>;
  readonly presence: Presence;
  readonly shells: Shells;
  readonly local: LocalLinks;
  /** Number of agents whose work has not been read yet, and bytes of operations not yet written to the network. */
  readonly backlog: { readonly agents: number; readonly bytes: number };
  /** Number of connections dropped before their handshake. */
  readonly dropped: number;
  /** Stops accepting agents and opening shells, until `listen`. Connected agents stay. */
  stopAccepting(): void;
  /**
   * Stops accepting agents, sends connected agents their reconnect delay, and waits for pending commits. Call `close`
   * afterward.
   */
  drain(): Promise<void>;
  /** Closes every link immediately. */
  close(): Promise<void>;
}

/** Creates a gateway that does not listen yet. */
export function createGateway(options: GatewayOptions): Gateway {
  return new AgentGateway(options);
}

class AgentGateway implements Gateway, LinkOwner {
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  private readonly identity: Identity;
  private readonly links: AgentLinks;
  private readonly log: Log;
  private readonly random: () => number;
  private readonly registry: LinkRegistry;
  private readonly port: AgentPort;
  /** Clock for the deadlines before the welcome. It does not advance while the process is blocked. */
  private readonly attended: AttendedClock;
  private readonly dispatcher: Dispatcher;
  private readonly inbound: Inbound;
  readonly shells: TerminalShells;
  /** Links that have not sent a hello. */
  private readonly greetings: Deadlines<Link>;
  private readonly reception: Reception;
  readonly local: LocalLinks;
  private readonly refusals: RefusedAgents;
  private readonly unsubscribe: () => void;
  private cancelTick: () => void = () => {};
  private sweptAt: number;
  private sweeping = false;
  private closed = false;

  constructor(options: GatewayOptions) {
    this.clock = options.clock;
    this.limits = { ...defaultGatewayLimits, ...options.limits };
    this.identity = options.identity;
    this.links = options.links;
    this.log = options.log;
    this.random = options.random;
    const { registry, shells } = options.connected ?? createConnectedAgents(this.clock, options.limits);
    this.registry = registry;
    this.shells = shells;
    this.dispatcher = new Dispatcher({ links: this.links, clock: this.clock, limits: this.limits, log: this.log });
    this.inbound = new Inbound({
      links: this.links,
      dispatcher: this.dispatcher,
      shells: this.shells,
      contents: new ContentSender({ links: this.links, clock: this.clock, limits: this.limits, log: this.log }),
      clock: this.clock,
      limits: this.limits,
      log: this.log,
    });
    this.attended = new AttendedClock(this.clock, 2 * this.limits.tickMs);
    this.greetings = new Deadlines(this.limits.helloTimeoutMs);
    this.reception = new Reception({
      orchestratorKey: this.identity.publicKey,
      links: this.links,
      registry: this.registry,
      dispatcher: this.dispatcher,
      clock: this.clock,
      log: this.log,
      claimants: this.limits.claimants,
      admissions: { perSecond: this.limits.admissionsPerSecond, burst: this.limits.admissionBurst },
      metricsInterval: options.metricsInterval,
      addresses: options.addresses ?? [],
    });
    this.local = new LocalLinks({
      registry: this.registry,
      reception: this.reception,
      dispatcher: this.dispatcher,
      clock: this.clock,
      commitMs: this.limits.drainMs,
    });
    this.sweptAt = this.clock.monotonic();
    const { links, clock, limits, log } = this;
    this.refusals = new RefusedAgents({ links, clock, limits, log });
    this.port = new AgentPort({
      identity: this.identity,
      clock,
      attended: this.attended,
      limits,
      log,
      proxyNetworks: options.proxyNetworks ?? [],
      mayBegin: (network) => this.refusals.mayBegin(network),
      onConnection: (ws, socket) => this.onConnection(ws, socket),
    });
    this.unsubscribe = options.bus.subscribe((hint) => this.onHint(hint));
    this.scheduleTick();
  }

  get presence(): Presence {
    return this.registry;
  }

  get backlog(): { agents: number; bytes: number } {
    return { agents: this.dispatcher.waiting, bytes: this.dispatcher.load };
  }

  get dropped(): number {
    return this.port.dropped;
  }

  async listen(host: string, port: number): Promise<number> {
    const actual = await this.port.listen(host, port);
    this.registry.draining = false;
    return actual;
  }

  stopAccepting(): void {
    this.registry.draining = true;
    this.port.stopListening();
  }

  async drain(): Promise<void> {
    this.stopAccepting();
    const commits: Promise<void>[] = [];
    let notified = 0;
    // At this rate, about 500 agents reconnect per second.
    const spreadSecs = Math.max(1, this.registry.count / 500);
    for (const link of [...this.registry.all()]) {
      link.send({ type: 'drain', retry_after_secs: Math.round((1 + this.random() * spreadSecs) * 10) / 10 });
      if (link.committing !== null) commits.push(link.committing);
      if (++notified % 200 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await this.waitForCommits(commits);
    for (const link of [...this.registry.all()]) link.close(1001, 'drain');
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.registry.draining = true;
    this.unsubscribe();
    this.cancelTick();
    this.port.stopListening();
    const links = new Set([...this.registry.all(), ...this.reception.all(), ...this.greetings.drain()]);
    const commits = [...links].flatMap((link) => link.committing ?? []);
    for (const link of links) link.destroy('closed');
    this.port.close();
    await this.waitForCommits(commits);
  }

  /** Waits up to `drainMs` for commits. Agents resend reports that were not committed. */
  private async waitForCommits(commits: readonly Promise<void>[]): Promise<void> {
    let cancelTimer = () => {};
    const late = new Promise<boolean>((resolve) => {
      cancelTimer = this.clock.after(this.limits.drainMs, () => resolve(true));
    });
    if (await Promise.race([Promise.allSettled(commits).then(() => false), late]))
      this.log.warn({ commits: commits.length }, 'failed to commit all reports in time; the agents will resend them');
    cancelTimer();
  }

  private onConnection(ws: LinkSocket, socket: TLSSocket): void {
    const link = new Link(ws, socket, this);
    if (this.registry.draining) {
      link.refuse({ code: 'draining', message: 'the orchestrator is stopping', retry_after_secs: 2 });
      return;
    }
    link.nonce = randomBytes(32);
    this.greetings.add(link, this.attended.monotonic());
    link.send({
      type: 'challenge',
      nonce: link.nonce.toString('hex'),
      public_key: this.identity.publicKey.toString('hex'),
      versions: [...supportedProtocolVersions],
    });
  }

  // Link events

  onHello(link: Link, proof: HelloProof, hello: unknown): void {
    this.greetings.delete(link);
    this.port.keepSlot(link.socket);
    this.reception
      .admit(link, proof, hello)
      .catch((error: unknown) => {
        this.log.error({ node_id: link.nodeId, remote_ip: link.remoteIp, err: error }, 'failed to admit agent');
        link.refuse({
          code: 'unavailable',
          message: 'the orchestrator could not record the agent',
          retry_after_secs: 5,
        });
      })
      .finally(() => this.port.release(link.socket));
  }

  onMessage(link: Link, message: Exclude<AgentMessage, Hello>, bytes: number): void {
    this.inbound.receive(link, message, bytes, this.clock.monotonic());
  }

  onFrame(link: Link, frame: Buffer): void {
    this.shells.receiveFrame(link, frame);
  }

  onRefused(link: Link, refusal: Refusal): void {
    this.refusals.add(link, refusal);
  }

  onClosing(link: Link): void {
    this.port.release(link.socket);
    this.shells.forget(link);
    if (link.returns) this.reception.reserveSlot(link);
  }

  onFault(link: Link, error: unknown): void {
    this.log.error(
      { node_id: link.nodeId, remote_ip: link.remoteIp, err: error },
      'bug: failed to handle a message from an agent; closed its link',
    );
  }

  onEnded(link: Link): void {
    this.greetings.delete(link);
    this.dispatcher.forget(link);
    this.inbound.forget(link);
    const wasOpen = link.standing !== null;
    const fields = { node_id: link.nodeId, remote_ip: link.remoteIp, reason: link.endReason };
    if (wasOpen) this.log.info(fields, 'agent disconnected');
    else this.log.debug(fields, 'connection closed before welcome');
    if (!this.registry.remove(link)) return;
    this.links
      .closed(link.nodeId!, link.endReason!, this.registry.lastFrameAt(link))
      .catch((error: unknown) =>
        this.log.warn({ node_id: link.nodeId, err: error }, 'failed to record an agent disconnect'),
      );
  }

  // Bus hints

  private onHint(hint: Hint): void {
    if (!('node_id' in hint)) return;
    const link = this.registry.get(hint.node_id) ?? this.reception.claimant(hint.node_id);
    if (!link) return;
    switch (hint.type) {
      case 'work':
        this.dispatcher.wake(link, workFlags.work);
        return;
      case 'agent_changed':
      case 'agent_removed':
        this.dispatcher.wake(link, workFlags.standing);
        return;
      case 'cancel':
        link.state === 'open'
          ? sendCancel(link, hint.operation_id)
          : this.dispatcher.wake(link, workFlags.cancellations);
        return;
      case 'operation_ended':
        // The operation expired, or was canceled before it began, so the agent reports no end.
        if (link.sentOperation === hint.operation_id && !link.sentOperationAccepted) {
          link.sentOperation = null;
          this.dispatcher.wake(link, workFlags.work);
        }
        return;
    }
  }

  // Timer

  private scheduleTick(): void {
    this.cancelTick = this.clock.after(this.limits.tickMs, () => {
      this.tick();
      if (!this.closed) this.scheduleTick();
    });
  }

  private tick(): void {
    const now = this.clock.monotonic();
    this.port.tick();
    for (const link of this.greetings.expired(this.attended.monotonic()))
      link.refuse({
        code: 'hello_timeout',
        message: `no hello within ${this.limits.helloTimeoutMs / 1000} s`,
        retry_after_secs: null,
      });
    this.shells.tick(now);
    this.registry.turn((link) => this.visit(link, now));
    if (now - this.sweptAt >= this.limits.sweepMs) {
      this.sweptAt = now;
      void this.sweep();
    }
  }

  private visit(link: Link, now: number): void {
    try {
      this.lookAfter(link, now);
    } catch (error) {
      link.fault(error);
    }
  }

  private lookAfter(link: Link, now: number): void {
    if (link.state !== 'open') return;
    if (link.unansweredPings >= this.limits.missedPings) {
      link.cut('connection lost: no answer to pings');
      return;
    }
    if (link.keyUntil !== null && link.keyUntil * 1000 <= this.clock.now()) {
      const message = 'this key was replaced by a new key and has expired';
      link.refuse(asKnown({ code: 'key_replaced', message, retry_after_secs: null }, link.version));
      return;
    }
    if (link.isStuck()) {
      link.cut('slow_reader');
      return;
    }
    link.unansweredPings++;
    link.ping();
    this.inbound.visit(link, now);
  }

  /** Finds work whose hint was lost, using one query for all agents. */
  private async sweep(): Promise<void> {
    if (this.sweeping || this.registry.count === 0) return;
    this.sweeping = true;
    try {
      for (const nodeId of await this.links.agentsWithWork()) {
        const link = this.registry.get(nodeId);
        if (link) this.dispatcher.wake(link, workFlags.work | workFlags.cancellations);
      }
    } catch (error) {
      this.log.warn({ err: error }, 'failed to sweep for queued work; the next sweep will retry');
    } finally {
      this.sweeping = false;
    }
  }
}
