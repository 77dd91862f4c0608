import type { GatewayLimits } from './limits.ts';

/** The pieces of one report that is on its way. */
export interface Assembly {
  seq: number;
  parts: number;
  texts: string[];
  /** Characters so far, which it holds of the common budget. */
  length: number;
  /** Frame bytes of pieces that were not credited, in order. */
  uncredited: number[];
  /** Its agent gets no credit: the budget is spent. */
  waiting: boolean;
  /** Called when it may go on. */
  resume: () => void;
  /** When it was last looked at, in monotonic milliseconds, and how long it was then; null before the first time. */
  looked: { at: number; length: number } | null;
  /** Monotonic milliseconds by which it must be whole. */
  dueAt: number;
}

export type PartFault = string;

/**
 * Puts large reports together within one budget for all links, of which each holds what has come of it, not what it
 * announced. When the budget is spent only the oldest goes on, so that there is always one that gets whole and makes
 * room; the agents of all others get no credit and so cannot send more than their windows.
 */
export class Reassembly {
  private readonly limits: GatewayLimits;
  private held = 0;
  /** Oldest first. */
  private readonly open = new Set<Assembly>();
  private readonly waiting = new Set<Assembly>();

  constructor(limits: GatewayLimits) {
    this.limits = limits;
  }

  /** Characters that reports on their way hold. */
  get load(): number {
    return this.held;
  }

  /**
   * Opens a report with its first piece still to be added.
   * @param now    monotonic milliseconds
   * @param resume called when it was told to wait and may go on
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

  /** Takes the next piece; `waiting` says whether more may come. @returns null, or what is wrong with it */
  add(assembly: Assembly, part: { seq: number; part: number; parts: number; text: string }): PartFault | null {
    if (part.seq !== assembly.seq || part.parts !== assembly.parts || part.part !== assembly.texts.length)
      return `piece ${part.part} of ${part.parts} of report ${part.seq}, where piece ${assembly.texts.length} of ${assembly.parts} of report ${assembly.seq} is due`;
    if (assembly.length + part.text.length > this.limits.reportLength)
      return `a report of more than ${this.limits.reportLength} characters`;
    assembly.length += part.text.length;
    this.held += part.text.length;
    assembly.texts.push(part.text);
    assembly.waiting = !this.mayGoOn(assembly);
    if (assembly.waiting) this.waiting.add(assembly);
    return null;
  }

  isWhole(assembly: Assembly): boolean {
    return assembly.texts.length === assembly.parts;
  }

  /**
   * Holds a report to the least rate and to its time; while it waits for room neither counts. To be called now and then.
   * @param now monotonic milliseconds
   */
  look(assembly: Assembly, now: number): PartFault | null {
    const { looked, seq, parts, texts, length } = assembly;
    assembly.looked = assembly.waiting ? null : { at: now, length };
    if (assembly.waiting) {
      assembly.dueAt = now + this.limits.reportDeadlineMs;
      return null;
    }
    if (looked !== null && length === looked.length)
      return `report ${seq} stood still at piece ${texts.length} of ${parts}`;
    if (looked !== null && length - looked.length < ((now - looked.at) / 1000) * this.limits.reportLengthPerSecond)
      return `report ${seq} came in at less than ${this.limits.reportLengthPerSecond} characters a second`;
    return now < assembly.dueAt
      ? null
      : `report ${seq} was not whole after ${Math.round(this.limits.reportDeadlineMs / 1000)} s`;
  }

  /** Gives its place back; safe to call twice. */
  release(assembly: Assembly): void {
    if (!this.open.delete(assembly)) return;
    this.waiting.delete(assembly);
    this.held -= assembly.length;
    assembly.texts = [];
    for (const next of this.waiting) {
      if (!this.mayGoOn(next)) break;
      this.waiting.delete(next);
      next.waiting = false;
      next.resume();
    }
    this.resumeOldest();
  }

  /** Reports wait in the order in which the budget stopped them, which is not that of their age. */
  private resumeOldest(): void {
    const oldest = this.open.values().next().value;
    if (!oldest?.waiting) return;
    this.waiting.delete(oldest);
    oldest.waiting = false;
    oldest.resume();
  }

  private mayGoOn(assembly: Assembly): boolean {
    return this.held <= this.limits.reassemblyLength || this.open.values().next().value === assembly;
  }
}
