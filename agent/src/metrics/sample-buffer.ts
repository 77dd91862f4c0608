import { measureNames, type Sample } from '@muster/protocol';

/** Number of samples in one day at the default interval. */
const defaultCapacity = 2_880;

/** Numbers for each sample: the time, then the measures in order. */
const width = measureNames.length + 1;

/**
 * A ring buffer of samples that the orchestrator has not stored yet, oldest first, with strictly ascending times. When
 * the buffer is full, it drops the oldest sample. Uses a single array of numbers, because objects would take five times
 * as much memory.
 */
export class SampleBuffer {
  readonly #values: Float64Array;
  readonly capacity: number;
  /** Indexes of the oldest sample and of the next one. Indexes never decrease. */
  #first = 0;
  #end = 0;
  /** Position of the oldest sample in the ring. */
  #head = 0;

  constructor(capacity = defaultCapacity) {
    this.capacity = capacity;
    this.#values = new Float64Array(capacity * width);
  }

  get first(): number {
    return this.#first;
  }

  /** Index of the next sample. */
  get end(): number {
    return this.#end;
  }

  /** Adds a sample. @returns whether the oldest sample was dropped */
  push(sample: Sample): boolean {
    const isFull = this.#end - this.#first === this.capacity;
    if (isFull) this.drop(this.#first + 1);
    const at = this.#offsetOf(this.#end++);
    this.#values[at] = sample.collected_at;
    for (const [index, name] of measureNames.entries()) this.#values[at + 1 + index] = sample[name] ?? Number.NaN;
    return isFull;
  }

  /** Returns a sample. @param index from `first` to `end - 1` */
  at(index: number): Sample {
    const at = this.#offsetOf(index);
    const sample: Record<string, number | null> = { collected_at: this.#values[at]! };
    for (const [index, name] of measureNames.entries()) {
      const value = this.#values[at + 1 + index]!;
      sample[name] = Number.isNaN(value) ? null : value;
    }
    return sample as Sample;
  }

  timeOf(index: number): number {
    return this.#values[this.#offsetOf(index)]!;
  }

  /** Drops all samples before this index. */
  drop(before: number): void {
    const count = Math.min(before, this.#end) - this.#first;
    if (count <= 0) return;
    this.#first += count;
    // An empty buffer starts over at the beginning of the array, so that the rest of the array never becomes resident.
    this.#head = this.#first === this.#end ? 0 : (this.#head + count) % this.capacity;
  }

  #offsetOf(index: number): number {
    return ((this.#head + index - this.#first) % this.capacity) * width;
  }
}
