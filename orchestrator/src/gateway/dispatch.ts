import { isDeepStrictEqual } from 'node:util';
import type { OperationMessage } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { AgentLinks } from '../domain/agent-link/agent-link.ts';
import type { GatewayLimits } from './limits.ts';
import { type Link, workFlags } from './link.ts';

/** Maximum number of links served per event-loop turn. */
const linksPerTurn = 32;
/** Assumed size of the first operation, in bytes. */
const bytesExpected = 512 * 1024;

/**
 * Reads and sends agents' queued work: operations, cancellations, and status changes. Reads for a bounded number of
 * agents at a time, and pauses while too many bytes are buffered.
 */
export class Dispatcher {
  private readonly links: AgentLinks;
  private readonly clock: Clock;
  private readonly limits: GatewayLimits;
  private readonly log: Log;
  private readonly queue = new Set<Link>();
  /** Lists of resources encoded as JSON. Entries exist as long as the domain retains the lists. */
  private readonly resources = new WeakMap<object, Buffer>();
  private inFlight = 0;
  private bufferedBytes = 0;
  /** Size of the last sent operation, in bytes. Used to estimate the size of operations that are being read. */
  private lastBytes = bytesExpected;
  private scheduled = false;

  constructor(options: { links: AgentLinks; clock: Clock; limits: GatewayLimits; log: Log }) {
    this.links = options.links;
    this.clock = options.clock;
    this.limits = options.limits;
    this.log = options.log;
  }

  /** Bytes of operations not yet written to the network, over all links. */
  get load(): number {
    return this.bufferedBytes;
  }

  /** Number of links whose work has not been read yet. */
  get waiting(): number {
    return this.queue.size;
  }

  /** Queues a link for service. @param flags the work to read and send */
  wake(link: Link, flags: number): void {
    link.pendingWork |= flags;
    // The link keeps the flags until the welcome is sent or the current dispatch has ended.
    if (link.state !== 'open' || link.dispatching) return;
    this.queue.add(link);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled || this.queue.size === 0 || this.isBusy()) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      let turn = 0;
      for (const link of this.queue) {
        if (turn++ >= linksPerTurn || this.isBusy()) break;
        this.queue.delete(link);
        void this.serve(link);
      }
      this.schedule();
    });
  }

  private isBusy(): boolean {
    const { dispatchesInFlight, dispatchBufferBytes } = this.limits;
    if (this.inFlight >= dispatchesInFlight) return true;
    // If no read is in flight, an operation may be read even if it is larger than the buffer.
    const expected = this.inFlight * this.lastBytes;
    return (
      this.bufferedBytes >= dispatchBufferBytes ||
      (this.inFlight > 0 && this.bufferedBytes + expected >= dispatchBufferBytes)
    );
  }

  private async serve(link: Link): Promise<void> {
    this.inFlight++;
    link.dispatching = true;
    try {
      while (link.pendingWork !== 0 && link.state === 'open') {
        const flags = link.pendingWork;
        link.pendingWork = 0;
        if (flags & workFlags.standing) await this.sendStanding(link);
        if (flags & workFlags.cancellations) await this.sendCancellations(link);
        if (flags & (workFlags.work | workFlags.standing)) await this.sendOperation(link);
      }
    } catch (error) {
      this.log.error({ node_id: link.nodeId, error }, 'failed to read work for an agent; the next sweep will retry');
    } finally {
      link.dispatching = false;
      this.inFlight--;
      this.schedule();
    }
  }

  private async sendStanding(link: Link): Promise<void> {
    const standing = await this.links.standing(link.nodeId!);
    if (link.state !== 'open') return;
    if (standing === null || standing.status === 'rejected') {
      const code = standing === null ? 'removed' : 'rejected';
      link.refuse({
        code,
        message: `this agent was ${code}`,
        retry_after_secs: this.limits.rejectedRetryAfterSecs,
      });
      return;
    }
    const isKnown = isDeepStrictEqual(standing, link.standing);
    link.standing = standing;
    if (standing.status === 'approved' && link.ignoredReports) {
      // The agent resends reports that were ignored before its approval only on a new link.
      link.send({ type: 'drain', retry_after_secs: 0 });
      link.close(1012, 'approved');
      return;
    }
    if (!isKnown) link.send({ type: 'status', ...standing });
  }

  private async sendCancellations(link: Link): Promise<void> {
    for (const id of await this.links.cancellations(link.nodeId!)) sendCancel(link, id);
  }

  private async sendOperation(link: Link): Promise<void> {
    if (link.standing?.status !== 'approved') return;
    if (link.sentOperation !== null) {
      link.moreWork = true;
      // Resends an operation only if the agent has not accepted it.
      if (link.sentOperationAccepted || link.operationBytes > 0) return;
      if (this.clock.monotonic() - link.sentOperationAt < this.limits.resendMs) return;
    }
    const next = await this.links.nextOperation(link.nodeId!, link.version);
    if (next === null || link.state !== 'open') return;
    const { operation } = next;
    link.moreWork = next.more;
    link.sentOperation = operation.operation_id;
    link.sentOperationAt = this.clock.monotonic();
    link.sentOperationAccepted = false;
    const encoded = this.encode(operation);
    const bytes = encoded.length;
    if (bytes > this.limits.orchestratorFrameBytes) {
      this.log.error(
        { node_id: link.nodeId, operation_id: operation.operation_id, bytes },
        'operation exceeds the maximum frame size; not sent',
      );
      return;
    }
    this.lastBytes = bytes;
    link.operationBytes += bytes;
    this.bufferedBytes += bytes;
    link.sendOperation(encoded, () => {
      link.operationBytes -= bytes;
      this.bufferedBytes -= bytes;
      this.schedule();
    });
  }

  /**
   * Encodes an operation as JSON. Many agents' operations contain the same list of resources, which is encoded once.
   */
  private encode({ resources, ...rest }: OperationMessage): Buffer {
    let encoded = this.resources.get(resources);
    if (encoded === undefined) {
      encoded = Buffer.from(`,"resources":${JSON.stringify(resources)}}`);
      this.resources.set(resources, encoded);
    }
    return Buffer.concat([Buffer.from(JSON.stringify(rest).slice(0, -1)), encoded]);
  }

  forget(link: Link): void {
    this.queue.delete(link);
  }
}

/** Sends a cancellation, unless it was the last cancellation sent on this link. Cancellations are idempotent. */
export function sendCancel(link: Link, operationId: string): void {
  if (link.state !== 'open' || link.cancelled === operationId) return;
  link.cancelled = operationId;
  link.send({ type: 'cancel', operation_id: operationId });
}
