import { categoryOf, genesis, hashOf } from '../domain/audit/audit-chain.ts';
import type { PlacedEvent } from '../domain/audit/placed-event.ts';
import type { Line } from '../store/transfer/transfer-format.ts';
import { TransferRefused } from '../store/transfer/transfer-table.ts';

/** Verifies the audit log in an export while the rows are read, by recomputing each hash in the chain. */

type ReadLine = Exclude<Line, { trailer: unknown }>;

/** Maximum number of events to buffer. An export lists events by sequence number, which is almost chain order. */
const maxEarly = 100_000;

export class ChainCheck {
  #columns: readonly string[] = [];
  #table = '';
  #last = { place: 0, hash: genesis };
  #head: { place: number; hash: string } | null = null;
  readonly #early = new Map<number, PlacedEvent>();
  #checked = 0;

  /** @throws TransferRefused at the first event that breaks the chain */
  take(line: ReadLine): void {
    if (Array.isArray(line)) {
      if (this.#table === 'audit_chain') this.#takeLink(this.#record(line));
      else if (this.#table === 'audit_events') this.#takeEvent(this.#record(line) as unknown as PlacedEvent);
    } else if ('table' in line) {
      this.#table = line.table;
      this.#columns = line.columns;
    }
  }

  /** @returns the number of verified events */
  end(): number {
    const { place, hash } = this.#last;
    if (this.#early.size > 0) throw broken(place + 1, 'the event at this position is missing');
    const head = this.#head;
    if (head !== null && (head.place !== place || head.hash !== hash))
      throw broken(Math.min(head.place, place) + 1, 'the chain does not end at its recorded position');
    return this.#checked;
  }

  #record = (values: readonly unknown[]): Record<string, unknown> =>
    Object.fromEntries(this.#columns.map((name, index) => [name, values[index]]));

  #takeLink({ name, place, hash }: Record<string, unknown>): void {
    const link = { place: Number(place), hash: String(hash) };
    if (name === 'anchor') this.#last = link;
    else if (name === 'head') this.#head = link;
  }

  #takeEvent(event: PlacedEvent): void {
    if (typeof event.place !== 'number') return;
    this.#early.set(event.place, event);
    for (let next = this.#early.get(this.#last.place + 1); next; next = this.#early.get(this.#last.place + 1)) {
      const { place, hash } = next;
      if (next.category !== categoryOf(next.event_type))
        throw broken(place, 'the category does not match the event type');
      if (hashOf(this.#last.hash, next) !== hash)
        throw broken(place, 'the hash does not match the event and the previous hash');
      this.#early.delete(place);
      this.#last = { place, hash };
      this.#checked++;
    }
    if (this.#early.size > maxEarly) throw broken(this.#last.place + 1, 'the event at this position is missing');
  }
}

const broken = (place: number, why: string) =>
  new TransferRefused(`the audit log in the backup was modified: at position ${place}, ${why}`);
