import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { AgentLinks } from '../domain/agent-link/agent-link.ts';
import type { GatewayLimits } from './limits.ts';
import type { Link } from './link.ts';
import { type ContentRequest, type Grant, LinkContents } from './link-contents.ts';

/** The first protocol version in which agents fetch contents. */
const versionWithContents = 7;
/** Maximum number of grants per link. An agent has at most 64 open operations. */
const maxGrants = 64;

/**
 * Sends contents to the agents that request them. Keeps one part per link in memory. Sends the next frame when the
 * network has accepted the previous frame, so that other messages need not wait. Links take turns.
 */
export class ContentSender {
  private readonly links: AgentLinks;
  private readonly clock: Clock;
  private readonly limits: GatewayLimits;
  private readonly log: Log;
  private readonly waiting = new Set<Link>();
  private served = 0;

  constructor(options: { links: AgentLinks; clock: Clock; limits: GatewayLimits; log: Log }) {
    this.links = options.links;
    this.clock = options.clock;
    this.limits = options.limits;
    this.log = options.log;
  }

  receive(link: Link, request: ContentRequest, now: number): void {
    const { contentRequests, contentWindowBytes, contentRequestBytes, agentMessageBurst } = this.limits;
    if (link.version < versionWithContents) {
      link.violation(`content_request requires protocol version ${versionWithContents}`);
      return;
    }
    // Requests for contents do not count as messages, because the window limits them.
    link.uncount();
    link.contents ??= new LinkContents(agentMessageBurst, now);
    const { contents } = link;
    contents.requests.push(request);
    contents.requestedBytes += request.bytes;
    if (contents.requests.length > contentRequests || contents.requestedBytes > contentWindowBytes) {
      link.violation(`more than ${contentRequests} requests or ${contentWindowBytes} bytes of contents are unanswered`);
      return;
    }
    if ((request.from % contentRequestBytes) + request.bytes > contentRequestBytes) {
      link.violation(`content_request crosses a multiple of ${contentRequestBytes} bytes`);
      return;
    }
    this.wake(link);
  }

  forget(link: Link): void {
    this.waiting.delete(link);
  }

  private wake(link: Link): void {
    if (link.state !== 'open' || link.contents === null || link.contents.isServed) return;
    if (link.contents.requests.length > 0) this.waiting.add(link);
    this.serveNext();
  }

  private serveNext(): void {
    for (const link of this.waiting) {
      if (this.served >= this.limits.contentLinks) return;
      this.waiting.delete(link);
      const { contents } = link;
      const request = contents?.requests[0];
      if (contents === null || request === undefined || link.state !== 'open') continue;
      this.served++;
      contents.isServed = true;
      this.serve(link, contents, request)
        .catch((error: unknown) => link.fault(error))
        .finally(() => {
          contents.isServed = false;
          this.served--;
          this.wake(link);
          this.serveNext();
        });
    }
  }

  private async serve(link: Link, contents: LinkContents, request: ContentRequest): Promise<void> {
    const { agentMessagesPerSecond, agentMessageBurst } = this.limits;
    const wait = contents.bucket.owe(this.clock.monotonic(), agentMessagesPerSecond, agentMessageBurst);
    if (wait > 0) await new Promise<void>((resolve) => void this.clock.after(wait, resolve));
    const read = await this.read(link, contents, request);
    // The agent may receive the last frame and send its next request before the network confirms the frame here.
    const answered = () => {
      contents.requests.shift();
      contents.requestedBytes -= request.bytes;
    };
    if (typeof read === 'string') {
      answered();
      link.send({ type: 'content_refused', request: request.request, message: read });
      return;
    }
    const { contentFrameBytes } = this.limits;
    for (let at = 0; at < read.length && link.state === 'open'; at += contentFrameBytes) {
      if (at + contentFrameBytes >= read.length) answered();
      await link.sendContent(request.request, read.subarray(at, at + contentFrameBytes));
    }
  }

  /** @returns the bytes, or the reason for refusing them */
  private async read(link: Link, contents: LinkContents, request: ContentRequest): Promise<Uint8Array | string> {
    const { operation_id, sha256, from, bytes } = request;
    if (link.standing?.status !== 'approved') return 'this agent is not approved';
    const grant = await this.grantOf(link, contents, operation_id);
    const size = grant?.sizes.get(sha256);
    if (grant === null || size === undefined || from + bytes > size)
      return 'no open operation of this agent references these bytes';
    grant.left -= bytes;
    if (grant.left < 0) return 'the contents of this operation were requested too often on this link';
    try {
      const read = await this.links.readContent(sha256, from);
      if (read !== null && read.length >= bytes) return read.subarray(0, bytes);
    } catch (error) {
      this.log.warn({ node_id: link.nodeId, sha256, err: error }, 'failed to read the content of a file');
      return 'the orchestrator failed to read the content; apply again';
    }
    return 'the orchestrator no longer stores the content, because its module was removed; apply again';
  }

  /**
   * Returns what the agent may read for an operation; null if the operation is not open. Checks again after a while,
   * because the operation may end.
   */
  private async grantOf(link: Link, contents: LinkContents, operationId: string): Promise<Grant | null> {
    const { grants } = contents;
    const now = this.clock.monotonic();
    const known = grants.get(operationId);
    if (known !== undefined && now < known.expiresAt) return known;
    const sizes = await this.links.contentsOf(link.nodeId!, operationId);
    grants.delete(operationId);
    if (sizes === null) return null;
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    // Allows a second request, in case the contents arrived damaged.
    const left = known?.left ?? 2 * total;
    const grant = { sizes, left, expiresAt: now + this.limits.contentGrantMs };
    grants.set(operationId, grant);
    for (const oldest of grants.keys()) {
      if (grants.size <= maxGrants) break;
      grants.delete(oldest);
    }
    return grant;
  }
}
