import { measureNames, type Sample } from '@muster/protocol';

/** A day of samples at the default interval: what is kept while nobody takes them. */
const keptSamples = 2_880;

/** The time, and then the measures in their order. */
const width = measureNames.length + 1;

/**
 * Samples that the orchestrator has not, oldest first, their times strictly ascending. In memory, and bounded: the oldest
 * make room. Numbers in one array, since as objects they would take five times as much.
 */
export class SampleBuffer {
  readonly #values: Float64Array;
  /** How many it holds. */
  readonly capacity: number;
  /** Number of the oldest, and of the next one: they are counted on for ever. */
  #first = 0;
  #end = 0;
  /** Place of the oldest. */
  #head = 0;

  constructor(capacity = keptSamples) {
    this.capacity = capacity;
    this.#values = new Float64Array(capacity * width);
  }

  get first(): number {
    return this.#first;
  }

  /** Number that the next one will have. */
  get end(): number {
    return this.#end;
  }

  /** @returns whether the oldest had to make room */
  push(sample: Sample): boolean {
    const isFull = this.#end - this.#first === this.capacity;
    if (isFull) this.drop(this.#first + 1);
    const at = this.#placeOf(this.#end++);
    this.#values[at] = sample.collected_at;
    for (const [index, name] of measureNames.entries()) this.#values[at + 1 + index] = sample[name] ?? Number.NaN;
    return isFull;
  }

  /** @param number from `first` up to before `end` */
  at(number: number): Sample {
    const at = this.#placeOf(number);
    const sample: Record<string, number | null> = { collected_at: this.#values[at]! };
    for (const [index, name] of measureNames.entries()) {
      const value = this.#values[at + 1 + index]!;
      sample[name] = Number.isNaN(value) ? null : value;
    }
    return sample as Sample;
  }

  timeOf(number: number): number {
    return this.#values[this.#placeOf(number)]!;
  }

  /** Forgets all before this one. */
  drop(before: number): void {
    const count = Math.min(before, this.#end) - this.#first;
    if (count <= 0) return;
    this.#first += count;
    // The same few places over and over, as long as they are taken in time: the rest never becomes resident.
    this.#head = this.#first === this.#end ? 0 : (this.#head + count) % this.capacity;
  }

  #placeOf(number: number): number {
    return ((this.#head + number - this.#first) % this.capacity) * width;
  }
}
