import { exporterLabel, exporterLength, type HelloProof, helloSchema } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { AgentLinks } from '../domain/agent-link/agent-link.ts';
import type { Refusal } from '../domain/agent-link/refusal.ts';
import { skewOf, warnOfSkew, withSkew } from './clock-skew.ts';
import type { Dispatcher } from './dispatch.ts';
import { checkHello } from './hello-check.ts';
import { Turns } from './keyed-mutex.ts';
import { faultOf, type Link, workFlags } from './link.ts';
import type { LinkRegistry } from './presence.ts';
import { ReconnectReservations } from './reconnect-reservations.ts';
import { TokenBucket } from './token-bucket.ts';

/** Maximum number of agents whose admission rate is stored. */
const maxRemembered = 50_000;

/** TLS 1.3 does not distinguish an empty context from none (RFC 8446, 7.5). */
const noContext = Buffer.alloc(0);

export interface ReceptionOptions {
  orchestratorKey: Buffer;
  links: AgentLinks;
  registry: LinkRegistry;
  dispatcher: Dispatcher;
  clock: Clock;
  log: Log;
  /** Maximum number of links per key that are being admitted or waiting for admission at the same time. */
  claimants: number;
  /** Rate and burst of admissions per agent. */
  admissions: { perSecond: number; burst: number };
  /** Seconds between samples, sent to agents in the welcome; undefined to omit it. */
  metricsInterval: number | undefined;
  /** Addresses, as HOST:PORT, that agents may dial in addition to the one they know, sent in the welcome. */
  addresses: readonly string[];
}

/** Replaces a refusal code that the agent's protocol version does not define. */
export function asKnown(refusal: Refusal, version: number): Refusal {
  const { code } = refusal;
  if (code !== 'key_replaced' && code !== 'key_refused' && code !== 'key_unknown') return refusal;
  if (version < 4) return { ...refusal, code: 'rejected' };
  return version < 5 && code === 'key_unknown' ? { ...refusal, code: 'key_refused' } : refusal;
}

/**
 * Admits links, from the hello to the welcome: checks the proof, resolves conflicts between two links of one agent, and
 * records the agent.
 */
export class Reception {
  private readonly options: ReceptionOptions;
  private readonly turns: Turns;
  /** Links that are being admitted, by node ID. Hints also apply to these links. */
  private readonly claims = new Map<string, Link>();
  private readonly reservations = new ReconnectReservations();
  /** Admission buckets by node id, least recently used first. */
  private readonly admissions = new Map<string, TokenBucket>();

  constructor(options: ReceptionOptions) {
    this.options = options;
    this.turns = new Turns(options.claimants);
  }

  claimant(nodeId: string): Link | undefined {
    return this.claims.get(nodeId);
  }

  /** Reserves the slot of an agent that reconnects immediately. Does nothing for a link with a previous key. */
  reserveSlot({ nodeId, instanceId, keyUntil }: Link): void {
    if (nodeId !== null && keyUntil === null)
      this.reservations.keep(nodeId, instanceId, this.options.clock.monotonic());
  }

  all(): Iterable<Link> {
    return this.claims.values();
  }

  /**
   * Welcomes or refuses the link. Verifies the signature before all other fields in the hello.
   * @param message the hello, parsed as JSON
   * @throws the domain's errors if the agent cannot be recorded
   */
  async admit(link: Link, proof: HelloProof, message: unknown): Promise<void> {
    const exporter = link.socket.exportKeyingMaterial(exporterLength, exporterLabel, noContext);
    const verdict = checkHello(proof, { exporter, nonce: link.nonce!, orchestratorKey: this.options.orchestratorKey });
    link.nonce = null;
    if ('refusal' in verdict) return link.refuse(verdict.refusal);
    const parsed = helloSchema.safeParse(message);
    if (!parsed.success) return link.violation(faultOf(parsed.error));
    const hello = parsed.data;
    // Measured first, because later steps may wait.
    link.clockSkewSecs = skewOf(hello.clock_ms, this.options.clock.now());
    link.instanceId = hello.instance_id;
    link.version = verdict.version;
    const key = await this.options.links.keyOf(hello);
    const nodeId = key.node_id;
    link.nodeId = nodeId;
    if ('refusal' in key) return link.refuse(asKnown(key.refusal, verdict.version));
    link.keyUntil = key.valid_until;
    const done = await this.turns.take(nodeId);
    if (done === null)
      return link.refuse({
        code: 'unavailable',
        message: 'too many links with this key wait for admission',
        retry_after_secs: 5,
      });
    this.claims.set(nodeId, link);
    try {
      if (link.state !== 'admitting') return;
      const bucket = this.admissionsOf(nodeId);
      const { perSecond, burst } = this.options.admissions;
      if (!bucket.take(this.options.clock.monotonic(), perSecond, burst)) {
        const message = 'this agent connects too often; it can reconnect in a moment';
        return link.refuse({ code: 'rate_exceeded', message, retry_after_secs: Math.ceil(1 / perSecond) });
      }
      if (!(await this.replaceFormer(link, nodeId))) {
        // Skips the limit for copied keys, because a process with a copied key must not use up the agent's admission
        // rate.
        bucket.giveBack();
        return;
      }
      // Checked after the probe, because the previous link may reserve the slot during the probe.
      if (this.reservations.isReservedForOther(nodeId, link.instanceId, this.options.clock.monotonic())) {
        const message = 'the agent is about to reconnect with a new key';
        return link.refuse({ code: 'unavailable', message, retry_after_secs: 5 });
      }
      if (this.options.registry.draining)
        return link.refuse({ code: 'draining', message: 'the orchestrator is stopping', retry_after_secs: 2 });
      const from = { ...key, remote_ip: link.remoteIp, now: Math.floor(this.options.clock.now() / 1000) };
      const attributes = withSkew(hello.attributes, link.clockSkewSecs);
      const admission = await this.options.links.admit({ ...hello, attributes }, from);
      if (!admission.admitted) return link.refuse(asKnown(admission.refusal, verdict.version));
      // The link closed during admission. The agent is recorded as seen, but not as connected.
      if (link.state !== 'admitting') return;
      link.standing = admission.standing;
      link.receivedSeq = admission.acknowledged;
      link.acknowledgedSeq = admission.acknowledged;
      link.state = 'open';
      this.options.registry.add(link);
      this.reservations.taken(nodeId);
      this.options.links.opened(nodeId);
      link.send({
        type: 'welcome',
        version: verdict.version,
        ...admission.standing,
        ...(verdict.version >= 4 ? { node_id: nodeId } : {}),
        acknowledged: admission.acknowledged,
        ...(this.options.metricsInterval === undefined ? {} : { metrics_interval: this.options.metricsInterval }),
        settled_operations: admission.settled_operations,
        ...this.addressesFor(verdict.version),
      });
      this.options.log.info(
        { node_id: nodeId, remote_ip: link.remoteIp, status: admission.standing.status },
        'agent connected',
      );
      warnOfSkew(this.options.log, link);
      this.options.dispatcher.wake(link, workFlags.work | workFlags.cancellations);
    } finally {
      this.claims.delete(nodeId);
      done();
    }
  }

  private addressesFor(version: number): { addresses?: string[] } {
    const { addresses } = this.options;
    return version >= 7 && addresses.length > 0 ? { addresses: [...addresses] } : {};
  }

  /** Returns the bucket that limits how often an agent connects. Each admission costs several writes. */
  private admissionsOf(nodeId: string): TokenBucket {
    const { clock, admissions } = this.options;
    const bucket = this.admissions.get(nodeId) ?? new TokenBucket(admissions.burst, clock.monotonic());
    this.admissions.delete(nodeId);
    this.admissions.set(nodeId, bucket);
    if (this.admissions.size > maxRemembered) this.admissions.delete(this.admissions.keys().next().value as string);
    return bucket;
  }

  /**
   * Replaces the agent's previous link, or refuses the newer link.
   * @returns false if the newer link was refused
   */
  private async replaceFormer(link: Link, nodeId: string): Promise<boolean> {
    const former = this.options.registry.get(nodeId);
    if (!former) return true;
    // A link with the current key replaces a link with a previous key without a probe.
    const outranks = link.keyUntil === null && former.keyUntil !== null;
    const isOther = former.instanceId !== link.instanceId && !outranks;
    if (isOther && (await this.options.registry.probe(former)) === 'answered') {
      link.refuse({
        code: 'cloned',
        message: 'another process with this key is connected; give each machine its own data directory',
        retry_after_secs: null,
      });
      await this.options.links.cloneSeen(nodeId, link.remoteIp);
      return false;
    }
    // Removes the link before its socket closes, because the disconnect must be recorded before the newer link is
    // admitted.
    const wasOpen = this.options.registry.remove(former);
    former.cut('replaced by a newer link');
    // The welcome contains the last acknowledged report, so pending commits must finish first.
    await former.committing;
    if (wasOpen) await this.options.links.closed(nodeId, former.endReason!, this.options.registry.lastFrameAt(former));
    return true;
  }
}
