import type { GatewayLimits } from './limits.ts';

/** The received chunks of one report. */
export interface Assembly {
  seq: number;
  parts: number;
  texts: string[];
  /** Characters received so far, which count toward the shared budget. */
  length: number;
  /** Frame bytes of each chunk that has not been credited yet, in order. */
  uncredited: number[];
  /** Whether the report waits for budget. The agent then receives no credit. */
  waiting: boolean;
  /** Called when a waiting report may continue. */
  resume: () => void;
  /**
   * Time (monotonic milliseconds) and length at the last check; null until the first check, and while the report
   * waits.
   */
  looked: { at: number; length: number } | null;
  /** Time by which the report must be complete, in monotonic milliseconds. */
  dueAt: number;
}

export type PartFault = string;

/**
 * Reassembles large reports within a memory budget that all links share. Only received chunks use budget, not the
 * announced size. When the budget is exhausted, only the oldest report continues, so that it completes and frees its
 * budget. The other agents receive no credit, so they cannot send more than their windows.
 */
export class Reassembly {
  private readonly limits: GatewayLimits;
  private heldBytes = 0;
  /** Incomplete reports, oldest first. */
  private readonly open = new Set<Assembly>();
  private readonly waiting = new Set<Assembly>();

  constructor(limits: GatewayLimits) {
    this.limits = limits;
  }

  /** Budget in use, in characters. */
  get load(): number {
    return this.heldBytes;
  }

  /**
   * Begins a report without any chunks.
   * @param now monotonic time in milliseconds
   * @param resume called when a waiting report may continue
   */
  begin(seq: number, parts: number, now: number, resume: () => void): Assembly {
    const assembly: Assembly = {
      seq,
      parts,
      texts: [],
      length: 0,
      uncredited: [],
      waiting: false,
      resume,
      looked: null,
      dueAt: now + this.limits.reportDeadlineMs,
    };
    this.open.add(assembly);
    return assembly;
  }

  /**
   * Adds the next chunk, and sets `waiting` if the following chunk must wait for budget.
   * @returns null, or a description of the error
   */
  add(assembly: Assembly, part: { seq: number; part: number; parts: number; text: string }): PartFault | null {
    if (part.seq !== assembly.seq || part.parts !== assembly.parts || part.part !== assembly.texts.length)
      return `unexpected piece ${part.part} of ${part.parts} of report ${part.seq}; the next is piece ${assembly.texts.length} of ${assembly.parts} of report ${assembly.seq}`;
    if (assembly.length + part.text.length > this.limits.reportLength)
      return `a report exceeds ${this.limits.reportLength} characters`;
    assembly.length += part.text.length;
    this.heldBytes += part.text.length;
    assembly.texts.push(part.text);
    assembly.waiting = !this.mayGoOn(assembly);
    if (assembly.waiting) this.waiting.add(assembly);
    return null;
  }

  isComplete(assembly: Assembly): boolean {
    return assembly.texts.length === assembly.parts;
  }

  /**
   * Checks a report's minimum rate and deadline. Neither applies while the report waits for budget. Call this
   * periodically.
   * @param now monotonic time in milliseconds
   */
  look(assembly: Assembly, now: number): PartFault | null {
    const { looked, seq, parts, texts, length } = assembly;
    assembly.looked = assembly.waiting ? null : { at: now, length };
    if (assembly.waiting) {
      assembly.dueAt = now + this.limits.reportDeadlineMs;
      return null;
    }
    if (looked !== null && length === looked.length)
      return `report ${seq} stalled at piece ${texts.length} of ${parts}`;
    if (looked !== null && length - looked.length < ((now - looked.at) / 1000) * this.limits.reportLengthPerSecond)
      return `report ${seq} arrived at less than ${this.limits.reportLengthPerSecond} characters per second`;
    return now < assembly.dueAt
      ? null
      : `report ${seq} was not complete after ${Math.round(this.limits.reportDeadlineMs / 1000)} s`;
  }

  /** Releases a report's budget. Has no effect if called again. */
  release(assembly: Assembly): void {
    if (!this.open.delete(assembly)) return;
    this.waiting.delete(assembly);
    this.heldBytes -= assembly.length;
    assembly.texts = [];
    for (const next of this.waiting) {
      if (!this.mayGoOn(next)) break;
      this.waiting.delete(next);
      next.waiting = false;
      next.resume();
    }
    this.resumeOldest();
  }

  /** Resumes the oldest report, even if the budget is exhausted. */
  private resumeOldest(): void {
    const oldest = this.open.values().next().value;
    if (!oldest?.waiting) return;
    this.waiting.delete(oldest);
    oldest.waiting = false;
    oldest.resume();
  }

  private mayGoOn(assembly: Assembly): boolean {
    return this.heldBytes <= this.limits.reassemblyLength || this.open.values().next().value === assembly;
  }
}
