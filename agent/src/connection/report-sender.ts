import { type AgentMessage, limits } from '@muster/protocol/wire';
import type { ReportSpool, SpoolEntry } from '../converge/engine.ts';
import { cutIntoPieces } from './pieces.ts';

type ReportFrame = Extract<AgentMessage, { type: 'report' | 'report_part' }>;

/** Sends the spool over one link, in order, without ever exceeding the window of unacknowledged bytes. */
export class ReportSender {
  private readonly spool: ReportSpool;
  private readonly write: (text: string) => void;
  private readonly tooLarge: (seq: number, length: number) => void;
  /** Sequence number of the last entry that was at least partly sent. */
  private sentSeq: number;
  /** Frames that count against the window, oldest first. `part` is null for a whole report or its last chunk. */
  private outstanding: { seq: number; part: number | null; bytes: number }[] = [];
  private outstandingBytes = 0;
  private pieces: { seq: number; texts: string[]; next: number } | null = null;

  /**
   * @param acknowledged last sequence number that the orchestrator has stored, from its welcome
   * @param write sends one frame
   * @param tooLarge called for an entry that is skipped because it is too large for any link
   */
  constructor(
    spool: ReportSpool,
    acknowledged: number,
    write: (text: string) => void,
    tooLarge: (seq: number, length: number) => void,
  ) {
    this.spool = spool;
    this.sentSeq = acknowledged;
    this.write = write;
    this.tooLarge = tooLarge;
  }

  /** Sends as many entries as the window allows. */
  pump(): void {
    if (!this.pumpPieces()) return;
    for (const entry of this.spool.pending(this.sentSeq)) {
      if (!this.begin(entry)) return;
    }
  }

  /** Begins to send an entry. @returns false if the window is full */
  private begin(entry: SpoolEntry): boolean {
    const { seq, reports } = entry;
    // Sends the entry as a single frame if it might fit. The other fields take less than a hundred bytes.
    if (entry.bytes <= limits.unacknowledgedBytes) {
      const text = JSON.stringify({ type: 'report', seq, reports } satisfies ReportFrame);
      const bytes = Buffer.byteLength(text);
      if (bytes <= limits.unacknowledgedBytes) {
        if (!this.fits(bytes)) return false;
        this.sentSeq = seq;
        this.send(text, bytes, seq, null);
        return true;
      }
    }
    // Splits the report only once its first chunk fits into the window, so that a waiting report is not also held in
    // memory as text.
    if (!this.fits(limits.unacknowledgedBytes / 2)) return false;
    this.sentSeq = seq;
    const text = JSON.stringify(reports);
    const texts = text.length > limits.reportLength ? [] : cutIntoPieces(text);
    if (texts.length === 0 || texts.length > limits.reportParts) {
      this.tooLarge(seq, text.length);
      return true;
    }
    this.pieces = { seq, texts, next: 0 };
    return this.pumpPieces();
  }

  /** Sends the remaining chunks of a report. @returns false if the window is full */
  private pumpPieces(): boolean {
    while (this.pieces !== null) {
      const { seq, texts, next } = this.pieces;
      const text = JSON.stringify({
        type: 'report_part',
        seq,
        part: next,
        parts: texts.length,
        text: texts[next]!,
      } satisfies ReportFrame);
      const bytes = Buffer.byteLength(text);
      if (!this.fits(bytes)) return false;
      const last = next === texts.length - 1;
      this.send(text, bytes, seq, last ? null : next);
      if (last) this.pieces = null;
      else this.pieces.next++;
    }
    return true;
  }

  /**
   * Reserves bytes in the window for other frames.
   * @returns false if they do not fit, or if a report is being sent
   */
  reserve(bytes: number): boolean {
    if (this.pieces !== null || !this.fits(bytes)) return false;
    this.outstandingBytes += bytes;
    return true;
  }

  /** Releases reserved bytes, and continues to send reports. */
  release(bytes: number): void {
    this.outstandingBytes -= bytes;
    this.pump();
  }

  private fits(bytes: number): boolean {
    return this.outstandingBytes + bytes <= limits.unacknowledgedBytes;
  }

  private send(text: string, bytes: number, seq: number, part: number | null): void {
    this.outstanding.push({ seq, part, bytes });
    this.outstandingBytes += bytes;
    this.write(text);
  }

  /** Handles an acknowledgment of all entries up to `seq`. */
  acknowledged(seq: number): void {
    this.spool.acknowledge(seq);
    this.drop((frame) => frame.seq <= seq);
    this.pump();
  }

  /** Handles an acknowledgment of one chunk. */
  credited(seq: number, part: number): void {
    this.drop((frame) => frame.seq === seq && frame.part === part);
    this.pump();
  }

  private drop(done: (frame: { seq: number; part: number | null }) => boolean): void {
    this.outstanding = this.outstanding.filter((frame) => {
      if (!done(frame)) return true;
      this.outstandingBytes -= frame.bytes;
      return false;
    });
  }
}
