import type { RefusalCode } from '@muster/protocol/wire';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import { networkOf } from '../../client-network.ts';
import type { AgentLinks } from '../../domain/agent-link/agent-link.ts';
import type { Refusal } from '../../domain/agent-link/refusal.ts';
import type { GatewayLimits } from '../limits.ts';
import type { Link } from '../link.ts';
import { TokenBucket } from '../token-bucket.ts';
import { RefusedHellos } from './refused-hellos.ts';

/** Refusals that are not the agent's fault, or that the audit log records as a different event. */
const unauditedRefusals: ReadonlySet<RefusalCode> = new Set(['draining', 'unavailable', 'cloned']);

/** Refusals of peers that proved no key or violated the protocol. They count fully toward the network's limit. */
const unprovenRefusals: ReadonlySet<RefusalCode> = new Set([
  'protocol_violation',
  'signature_invalid',
  'rate_exceeded',
]);
/** Refusals that a correct agent may receive. They do not count toward the limit of the agent's network. */
const freeRefusals: ReadonlySet<RefusalCode> = new Set([
  'draining',
  'unavailable',
  'cloned',
  'hello_timeout',
  'version_unsupported',
]);

export interface RefusedAgentsOptions {
  readonly links: Pick<AgentLinks, 'refused'>;
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  readonly log: Log;
}

/** Logs and audits refusals of agents, at a limited rate, and delays the networks that they come from. */
export class RefusedAgents {
  private readonly options: RefusedAgentsOptions;
  private readonly hellos: RefusedHellos;
  private readonly bucket: TokenBucket;
  private unlogged = 0;

  constructor(options: RefusedAgentsOptions) {
    const { clock, limits } = options;
    this.options = options;
    this.bucket = new TokenBucket(limits.refusalBurst, clock.monotonic());
    this.hellos = new RefusedHellos({ perSecond: limits.refusedHellosPerSecond, burst: limits.refusedHelloBurst });
  }

  /** Reports whether a handshake from the network may begin. */
  mayBegin(network: string): boolean {
    return this.hellos.mayBegin(network, this.options.clock.monotonic());
  }

  add(link: Pick<Link, 'state' | 'nodeId' | 'remoteIp'>, refusal: Refusal): void {
    const { links, clock, limits, log } = this.options;
    const { code, message } = refusal;
    if (link.state !== 'open' || code === 'protocol_violation') this.charge(link.remoteIp, code);
    if (!this.bucket.take(clock.monotonic(), limits.refusalsPerSecond, limits.refusalBurst)) {
      this.unlogged++;
      return;
    }
    const { unlogged } = this;
    this.unlogged = 0;
    // The agent's node ID; null until the agent has proved possession of its key.
    const { nodeId, remoteIp } = link;
    log.warn(
      { node_id: nodeId, remote_ip: remoteIp, code, reason: message, ...(unlogged > 0 && { unlogged }) },
      'refused an agent',
    );
    if (unauditedRefusals.has(code)) return;
    links
      .refused(refusal, { node_id: nodeId, remote_ip: remoteIp })
      .catch((error: unknown) => log.warn({ err: error }, 'failed to record refusal in the audit log'));
  }

  private charge(remoteIp: string, code: RefusalCode): void {
    const { clock, limits } = this.options;
    const cost = unprovenRefusals.has(code) ? 1 : freeRefusals.has(code) ? 0 : limits.provenRefusalCost;
    if (cost > 0) this.hellos.charge(networkOf(remoteIp), cost, clock.monotonic());
  }
}
