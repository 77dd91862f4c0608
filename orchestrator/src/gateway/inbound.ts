import type { Sample } from '@muster/protocol';
import type { AgentMessage, Hello, OutputProgress, Report } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { AgentLinks } from '../domain/agent-link/agent-link.ts';
import { skewOf, warnOfSkew, withSkew } from './clock-skew.ts';
import type { ContentSender } from './content-sender.ts';
import type { Dispatcher } from './dispatch.ts';
import type { GatewayLimits } from './limits.ts';
import { type Link, workFlags } from './link.ts';
import { Reassembly } from './reassembly.ts';
import { readReports } from './report-text.ts';
import type { TerminalShells } from './terminal-shells.ts';
import { TokenBucket } from './token-bucket.ts';

type Part = Extract<AgentMessage, { type: 'report_part' }>;

/**
 * Passes the messages that agents send after the welcome on to the domain, and acknowledges them once they are
 * committed.
 */
export class Inbound {
  private readonly links: AgentLinks;
  private readonly dispatcher: Dispatcher;
  private readonly shells: TerminalShells;
  private readonly contents: ContentSender;
  private readonly limits: GatewayLimits;
  private readonly log: Log;
  private readonly clock: Clock;
  readonly reassembly: Reassembly;
  private samplesFailing = false;

  constructor(options: {
    links: AgentLinks;
    dispatcher: Dispatcher;
    shells: TerminalShells;
    contents: ContentSender;
    clock: Clock;
    limits: GatewayLimits;
    log: Log;
  }) {
    this.clock = options.clock;
    this.links = options.links;
    this.dispatcher = options.dispatcher;
    this.shells = options.shells;
    this.contents = options.contents;
    this.limits = options.limits;
    this.log = options.log;
    this.reassembly = new Reassembly(options.limits);
  }

  receive(link: Link, message: Exclude<AgentMessage, Hello>, bytes: number, now: number): void {
    switch (message.type) {
      case 'report':
        if (!this.mayReport(link, bytes, now)) return;
        if (link.assembly !== null) {
          link.violation(`report ${message.seq} was sent between the pieces of another report`);
          return;
        }
        this.take(link, message.seq, message.reports, bytes);
        return;
      case 'report_part':
        if (this.mayReport(link, bytes, now)) this.takePart(link, message, bytes, now);
        return;
      case 'attributes':
        if (message.clock_ms !== undefined) link.clockSkewSecs = skewOf(message.clock_ms, this.clock.now());
        link.attributes = withSkew(message.attributes, link.clockSkewSecs);
        this.commitAttributes(link, now);
        return;
      case 'metrics':
        this.takeSamples(link, message.samples);
        return;
      case 'output_progress':
        this.showOutput(link, message, bytes, now);
        return;
      case 'drift_hint':
        link.driftHint = message.keys;
        this.hintDrift(link, now);
        return;
      case 'content_request':
        this.contents.receive(link, message, now);
        return;
      case 'terminal_opened':
      case 'terminal_refused':
      case 'terminal_exited':
      case 'terminal_credit':
        this.shells.receive(link, message);
        return;
      case 'bye':
        link.endReason ??= `bye: ${message.reason}`;
        link.returns = message.returns === true;
        link.close(1000, 'bye');
        return;
    }
  }

  /**
   * Retries pending attributes and drift hints, and refuses agents whose reports stall. Called once per ping interval.
   */
  visit(link: Link, now: number): void {
    if (link.attributes !== null) this.commitAttributes(link, now);
    this.hintDrift(link, now);
    const { assembly } = link;
    const fault = assembly === null ? null : this.reassembly.look(assembly, now);
    if (fault !== null) link.violation(fault);
  }

  /** Releases the buffers and timers of a closed link. A pending commit continues. */
  forget(link: Link): void {
    if (link.assembly !== null) this.reassembly.release(link.assembly);
    for (const report of link.reportQueue ?? []) if (report.assembly !== null) this.reassembly.release(report.assembly);
    this.contents.forget(link);
    link.assembly = null;
    link.reportQueue = null;
    link.attributes = null;
    link.cancelAttributes?.();
    link.cancelAttributes = null;
    link.cancelCredit?.();
    link.cancelCredit = null;
  }

  /**
   * Reports whether to accept a report. Ignores a pending agent's reports without acknowledging them, so that the agent
   * keeps them until it is approved. Closes the link if a report exceeds the window.
   */
  private mayReport(link: Link, bytes: number, now: number): boolean {
    this.limitRate(link, now);
    link.unacknowledgedBytes += bytes;
    if (link.unacknowledgedBytes <= this.limits.unacknowledgedBytes) {
      // An acknowledgment of this report would also acknowledge the ignored reports.
      if (link.standing?.status === 'approved' && !link.ignoredReports) return true;
      if (!link.ignoredReports)
        this.log.info(
          { node_id: link.nodeId },
          'ignored reports from an agent that is not approved; the agent will resend them once it is approved',
        );
      link.ignoredReports = true;
      return false;
    }
    link.violation(`more than ${this.limits.unacknowledgedBytes} bytes of unacknowledged reports`);
    return false;
  }

  /**
   * Delays acknowledgments to slow down an agent that sends reports faster than the message rate. Does not refuse the
   * agent, because the window limits its reports.
   */
  private limitRate(link: Link, now: number): void {
    const { agentMessagesPerSecond, agentMessageBurst } = this.limits;
    link.uncount();
    link.reportBucket ??= new TokenBucket(agentMessageBurst, now);
    link.reportsAnsweredFrom = now + link.reportBucket.owe(now, agentMessagesPerSecond, agentMessageBurst);
  }

  private takePart(link: Link, part: Part, bytes: number, now: number): void {
    if (link.assembly === null) {
      if (part.seq <= link.receivedSeq) {
        link.violation(`report ${part.seq} does not follow report ${link.receivedSeq}`);
        return;
      }
      link.assembly = this.reassembly.begin(part.seq, part.parts, now, () => this.resume(link));
    }
    const { assembly } = link;
    const fault = this.reassembly.add(assembly, part);
    if (fault !== null) {
      link.violation(fault);
      return;
    }
    assembly.uncredited.push(bytes);
    // The last chunks of a complete report count toward the window until the report is committed.
    if (this.reassembly.isComplete(assembly)) this.finish(link);
    else this.credit(link);
  }

  /** Continues a waiting report. Called by the link that freed the budget, so errors must not reach the caller. */
  private resume(link: Link): void {
    try {
      this.credit(link);
    } catch (error) {
      link.fault(error);
    }
  }

  /** Returns credit for received chunks, unless the report waits for budget. */
  private credit(link: Link): void {
    const { assembly } = link;
    if (assembly === null || assembly.waiting || link.state !== 'open' || link.cancelCredit !== null) return;
    const early = link.reportsAnsweredFrom - this.clock.monotonic();
    if (early > 0) {
      link.cancelCredit = this.clock.after(early, () => {
        link.cancelCredit = null;
        this.resume(link);
      });
      return;
    }
    let part = assembly.texts.length - assembly.uncredited.length;
    for (const bytes of assembly.uncredited) {
      link.unacknowledgedBytes -= bytes;
      link.send({ type: 'credit', seq: assembly.seq, part: part++ });
    }
    assembly.uncredited = [];
  }

  private finish(link: Link): void {
    const assembly = link.assembly!;
    const bytes = assembly.uncredited.reduce((sum, piece) => sum + piece, 0);
    const reports = readReports(assembly.texts.join(''));
    assembly.texts = [];
    if (typeof reports === 'string') {
      link.violation(`report ${assembly.seq}: ${reports}`.slice(0, 300));
      return;
    }
    link.assembly = null;
    this.take(link, assembly.seq, reports, bytes, assembly);
  }

  private take(
    link: Link,
    seq: number,
    reports: readonly Report[],
    bytes: number,
    assembly: Link['assembly'] = null,
  ): void {
    if (seq <= link.receivedSeq) {
      if (assembly !== null) this.reassembly.release(assembly);
      link.violation(`report ${seq} does not follow report ${link.receivedSeq}`);
      return;
    }
    link.receivedSeq = seq;
    link.reportQueue ??= [];
    link.reportQueue.push({ seq, reports, bytes, assembly });
    if (link.committing === null) {
      link.committing = this.commitAll(link)
        .catch((error: unknown) => link.fault(error))
        .finally(() => {
          link.committing = null;
        });
    }
  }

  /** Commits the queued reports, one commit at a time. Reports that arrive during a commit share the next commit. */
  private async commitAll(link: Link): Promise<void> {
    while (link.reportQueue !== null && link.reportQueue.length > 0) {
      const batch = link.reportQueue;
      link.reportQueue = null;
      const seq = batch[batch.length - 1]!.seq;
      const reports = batch.length === 1 ? batch[0]!.reports : batch.flatMap((report) => report.reports);
      try {
        const refusal = await this.links.reported(link.nodeId!, link.instanceId, seq, reports);
        if (refusal !== null) return link.refuse(refusal);
      } catch (error) {
        this.log.error({ node_id: link.nodeId, err: error }, 'failed to commit reports; the agent will resend them');
        return link.refuse({
          code: 'unavailable',
          message: 'the reports could not be stored',
          retry_after_secs: 5,
        });
      } finally {
        for (const { assembly } of batch) if (assembly !== null) this.reassembly.release(assembly);
      }
      const early = link.reportsAnsweredFrom - this.clock.monotonic();
      if (early > 0 && link.state === 'open')
        await new Promise<void>((resolve) => {
          this.clock.after(early, resolve);
        });
      for (const { bytes } of batch) link.unacknowledgedBytes -= bytes;
      link.acknowledgedSeq = seq;
      link.send({ type: 'ack', seq });
      this.followOperations(link, reports);
    }
  }

  private followOperations(link: Link, reports: readonly Report[]): void {
    let look = false;
    for (const report of reports) {
      const sentHere = report.operation_id === link.sentOperation;
      if (sentHere) link.sentOperationAccepted = true;
      if (report.type !== 'finished') continue;
      if (sentHere) link.sentOperation = null;
      // For an operation that was sent on an earlier link, `moreWork` is unknown on this link.
      look ||= !sentHere || link.moreWork;
    }
    if (look) this.dispatcher.wake(link, workFlags.work);
  }

  private commitAttributes(link: Link, now: number): void {
    const { attributes } = link;
    if (attributes === null || link.attributesCommitting || link.state !== 'open') return;
    const wait = link.attributesAt + this.limits.attributesIntervalMs - now;
    if (wait > 0) {
      link.cancelAttributes ??= this.clock.after(wait, () => {
        link.cancelAttributes = null;
        this.commitAttributes(link, this.clock.monotonic());
      });
      return;
    }
    link.attributes = null;
    link.attributesAt = now;
    link.attributesCommitting = true;
    warnOfSkew(this.log, link);
    this.links.attributesChanged(link.nodeId!, attributes).then(
      () => {
        link.attributesCommitting = false;
      },
      (error: unknown) => {
        link.attributesCommitting = false;
        // The next ping interval retries, with newer attributes if any have arrived.
        link.attributes ??= attributes;
        this.log.warn({ node_id: link.nodeId, err: error }, 'failed to commit attributes; will retry');
      },
    );
  }

  /**
   * Stores samples. Ignores samples from pending agents. Agents resend samples that are refused or not acknowledged.
   */
  private takeSamples(link: Link, samples: readonly Sample[]): void {
    if (link.standing?.status !== 'approved') return;
    if (link.sampling) {
      link.violation('samples were sent before the previous samples were answered');
      return;
    }
    link.sampling = true;
    const newest = samples.reduce(
      (latest, { collected_at }) => Math.max(latest, collected_at),
      samples[0]!.collected_at,
    );
    this.links
      .sampled(link.nodeId!, samples)
      .then(
        () => {
          this.samplesFailing = false;
          link.sampling = false;
          link.send({ type: 'metrics_stored', collected_at: newest });
        },
        (error: unknown) => {
          link.sampling = false;
          // Logs only the first failure, because a full disk affects every agent.
          if (!this.samplesFailing)
            this.log.warn({ node_id: link.nodeId, err: error }, 'failed to store samples; the agents will resend them');
          this.samplesFailing = true;
          const retry_after_secs = this.limits.samplesRetryMs / 1000;
          if (link.version >= 3) link.send({ type: 'metrics_refused', retry_after_secs });
        },
      )
      .catch((error: unknown) => link.fault(error));
  }

  /** Forwards live output to viewers. Drops output that cannot be forwarded, and output from unapproved agents. */
  private showOutput(link: Link, progress: OutputProgress, bytes: number, now: number): void {
    const { outputProgressBytes, outputProgressPerSecond, outputProgressBurst, unacknowledgedBytes } = this.limits;
    if (bytes > outputProgressBytes || link.unacknowledgedBytes + bytes > unacknowledgedBytes) {
      link.violation(`output_progress of ${bytes} bytes exceeds the maximum or the remaining window`);
      return;
    }
    link.outputBucket ??= new TokenBucket(outputProgressBurst, now);
    if (link.showing || !link.outputBucket.take(now, outputProgressPerSecond, outputProgressBurst)) {
      const message = link.showing
        ? 'output_progress was sent before the previous message was answered'
        : 'output_progress was sent too often';
      link.refuse({ code: 'rate_exceeded', message, retry_after_secs: null });
      return;
    }
    if (link.standing?.status !== 'approved') {
      link.send({ type: 'output_taken' });
      return;
    }
    link.showing = true;
    this.links
      .printed(link.nodeId!, progress)
      .catch((error: unknown) => this.log.debug({ node_id: link.nodeId, err: error }, 'dropped live output'))
      .then(() => {
        link.showing = false;
        link.send({ type: 'output_taken' });
      })
      .catch((error: unknown) => link.fault(error));
  }

  /**
   * Handles only the newest drift hint, one at a time. Hints may add records to the database, so a hint above the rate
   * waits for the next ping interval.
   */
  private hintDrift(link: Link, now: number): void {
    const keys = link.driftHint;
    if (keys === null || link.driftHinting || link.state !== 'open') return;
    if (link.standing?.status !== 'approved') {
      link.driftHint = null;
      return;
    }
    link.driftHints ??= new TokenBucket(this.limits.driftHintBurst, now);
    if (!link.driftHints.take(now, 1000 / this.limits.driftHintIntervalMs, this.limits.driftHintBurst)) return;
    link.driftHint = null;
    link.driftHinting = true;
    this.links
      .driftHinted(link.nodeId!, keys)
      .catch((error: unknown) => this.log.warn({ node_id: link.nodeId, err: error }, 'dropped drift hint'))
      .finally(() => {
        link.driftHinting = false;
        this.hintDrift(link, now);
      });
  }
}
