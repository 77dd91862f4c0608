import type { Clock } from '../../../lib/src/clock.ts';
import type { Presence } from '../domain/shared/context.ts';
import type { GatewayLimits } from './limits.ts';
import type { Link, ProbeOutcome } from './link.ts';

/** The open links by node id, and a timer wheel that checks each link once per ping interval. */
export class LinkRegistry implements Presence {
  private readonly clock: Clock;
  private readonly limits: GatewayLimits;
  private readonly byNode = new Map<string, Link>();
  private readonly wheel: Set<Link>[];
  private hand = 0;
  private turnedAt: number;
  private probes = 0;
  /** Whether the gateway is draining, so that no link is added and no shell is opened. */
  draining = false;

  constructor(clock: Clock, limits: GatewayLimits) {
    this.clock = clock;
    this.limits = limits;
    this.turnedAt = clock.monotonic();
    const slots = Math.max(1, Math.round(limits.pingIntervalMs / limits.tickMs));
    this.wheel = Array.from({ length: slots }, () => new Set<Link>());
  }

  get count(): number {
    return this.byNode.size;
  }

  /** Reports whether the agent has an open link. If so, its record and attributes are committed. */
  isConnected(nodeId: string): boolean {
    return this.byNode.has(nodeId);
  }

  lastContactAt(nodeId: string): number | null {
    const link = this.byNode.get(nodeId);
    return link ? this.lastFrameAt(link) : null;
  }

  clockAheadSecs(nodeId: string): number {
    return this.byNode.get(nodeId)?.clockSkewSecs ?? 0;
  }

  /** Returns null, because the gateway has only the links of this process. */
  replicaOf(): null {
    return null;
  }

  /** Returns the time of the last frame on a link, in Unix seconds. */
  lastFrameAt(link: Link): number {
    return Math.floor((this.clock.now() - (this.clock.monotonic() - link.lastFrameAt)) / 1000);
  }

  get(nodeId: string): Link | undefined {
    return this.byNode.get(nodeId);
  }

  all(): Iterable<Link> {
    return this.byNode.values();
  }

  /** Adds an open link. The first check follows after a full ping interval. */
  add(link: Link): void {
    this.byNode.set(link.nodeId!, link);
    link.slot = (this.hand + this.wheel.length - 1) % this.wheel.length;
    this.wheel[link.slot]!.add(link);
  }

  /** Removes a link. @returns false if it was not its agent's current link */
  remove(link: Link): boolean {
    if (link.slot >= 0) this.wheel[link.slot]!.delete(link);
    link.slot = -1;
    if (link.nodeId === null || this.byNode.get(link.nodeId) !== link) return false;
    return this.byNode.delete(link.nodeId);
  }

  /** Checks the links that have become due since the last call. */
  turn(visit: (link: Link) => void): void {
    const now = this.clock.monotonic();
    const slotMs = this.limits.pingIntervalMs / this.wheel.length;
    // If the process was suspended for a long time, it is enough to check each link once.
    if (now - this.turnedAt > this.limits.pingIntervalMs) this.turnedAt = now - this.limits.pingIntervalMs;
    while (now - this.turnedAt >= slotMs) {
      this.turnedAt += slotMs;
      for (const link of this.wheel[this.hand]!) visit(link);
      this.hand = (this.hand + 1) % this.wheel.length;
    }
  }

  /**
   * Checks with a ping whether a link's agent is alive. Only the pong for this ping counts. Callers during a probe
   * share its outcome: rival links here and on another replica may cause probes at the same time.
   */
  probe(link: Link): Promise<ProbeOutcome> {
    if (link.state !== 'open') return Promise.resolve('ended');
    if (link.probe) return link.probe.outcome;
    const { promise: outcome, resolve } = Promise.withResolvers<ProbeOutcome>();
    const payload = `probe ${++this.probes}`;
    const finish = (result: ProbeOutcome) => {
      link.probe = null;
      cancelTimer();
      resolve(result);
    };
    const cancelTimer = this.clock.after(this.limits.cloneProbeMs, () => finish('silent'));
    link.probe = { payload, outcome, answered: () => finish('answered'), ended: () => finish('ended') };
    link.ping(payload);
    return outcome;
  }
}
