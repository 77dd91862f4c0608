import type { Report } from '@muster/protocol/wire';
import type { Journal } from '../../journal/journal.ts';
import type { JournalEvent } from '../../journal/state.ts';
import { groupReports, isProgress } from './reports.ts';

/** Maximum size of the reports in the spool, in bytes. Above it, the oldest script output is dropped. */
const maxSpoolBytes = 32 * 1024 * 1024;

/** Writes reports to the spool. They become visible once they are on disk. */
export class Publisher {
  readonly #journal: Journal;
  readonly #onReports: () => void;
  readonly #maxBytes: number;

  constructor(journal: Journal, onReports: () => void, maxBytes = maxSpoolBytes) {
    this.#journal = journal;
    this.#onReports = onReports;
    this.#maxBytes = maxBytes;
  }

  /** Whether new diffs must be omitted because the spool is too large even without output. */
  get isOverLimit(): boolean {
    return this.#journal.state.spoolBytes > this.#maxBytes;
  }

  /**
   * Records events and reports in one journal line, and publishes the reports once the line is on disk.
   * @param name name of the step, for crash points
   * @param events events to record before or after the reports
   */
  async publish(
    name: string,
    reports: readonly Report[],
    events: { before?: JournalEvent[]; after?: JournalEvent[] } = {},
  ): Promise<void> {
    let seq = this.#journal.state.lastSeq;
    const entries = groupReports(reports).map((entry): JournalEvent => ({ t: 'report', seq: ++seq, reports: entry }));
    this.#journal.record(name, [...(events.before ?? []), ...entries, ...(events.after ?? [])]);
    this.#dropOldestOutput();
    if (await this.#journal.sync()) this.#onReports();
  }

  #dropOldestOutput(): void {
    const { state } = this.#journal;
    if (state.spoolBytes <= this.#maxBytes) return;
    let excess = state.spoolBytes - this.#maxBytes;
    const seqs: number[] = [];
    for (const entry of state.spool.values()) {
      if (excess <= 0) break;
      if (!isProgress(entry.reports)) continue;
      seqs.push(entry.seq);
      excess -= entry.bytes;
    }
    if (seqs.length > 0) this.#journal.record('shed', [{ t: 'dropped', seqs }]);
  }
}
