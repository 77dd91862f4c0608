import type { Report } from '@muster/protocol/wire';
import type { Journal } from '../../journal/journal.ts';
import type { JournalEvent } from '../../journal/state.ts';
import { groupReports, isProgress } from './reports.ts';

/** Bytes of reports kept for the orchestrator; beyond it, output of scripts is given up, the oldest first. */
const spoolBound = 32 * 1024 * 1024;

/** Puts what is to be told into the spool, durable before anybody can see it. */
export class Publisher {
  readonly #journal: Journal;
  readonly #onReports: () => void;
  readonly #bound: number;

  constructor(journal: Journal, onReports: () => void, bound = spoolBound) {
    this.#journal = journal;
    this.#onReports = onReports;
    this.#bound = bound;
  }

  /** True when diffs are to be left out, because even without output there is too much to tell. */
  get crowded(): boolean {
    return this.#journal.state.spoolBytes > this.#bound;
  }

  /**
   * Records events and reports as one line, and shows the reports once they are on disk.
   * @param name of the step, for the crash points
   * @param events what belongs to the reports and must be there before (`before`) or after them
   */
  async publish(
    name: string,
    reports: readonly Report[],
    events: { before?: JournalEvent[]; after?: JournalEvent[] } = {},
  ): Promise<void> {
    let seq = this.#journal.state.lastSeq;
    const entries = groupReports(reports).map((entry): JournalEvent => ({ t: 'report', seq: ++seq, reports: entry }));
    this.#journal.record(name, [...(events.before ?? []), ...entries, ...(events.after ?? [])]);
    this.#shed();
    if (await this.#journal.sync()) this.#onReports();
  }

  #shed(): void {
    const { state } = this.#journal;
    if (state.spoolBytes <= this.#bound) return;
    let excess = state.spoolBytes - this.#bound;
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
