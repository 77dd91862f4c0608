import { countingMeasures, fractionalMeasures, type MeasureName, measureNames, type Sample } from '@muster/protocol';

/**
 * Samples of the agents' machines. They are many and none of them matters much, so they live apart from everything else:
 * on SQLite in a file of their own that is not synced at each commit, on PostgreSQL in partitions.
 */
export interface SampleStore {
  /**
   * Keeps samples of one agent; those of many agents share a commit. A time that is there already stays as it is, so
   * sending again what may have been lost does no harm. Resolves after the commit.
   *
   * Rejects, nothing of these having been kept, with `storage_full` or `storage_unavailable`.
   */
  add(nodeId: string, samples: readonly Sample[]): Promise<void>;
  /** The newest samples at or after a time, oldest first. */
  since(nodeId: string, since: number, limit: number): Promise<Sample[]>;
  /**
   * The newest buckets of `step` seconds, oldest first: averages of what is not null, and of what counts up the last
   * that is not null. An average over a restart of the machine would be a count that there never was.
   */
  averages(nodeId: string, since: number, step: number, limit: number): Promise<Sample[]>;
  /** The newest sample of each agent that has one since then. */
  latest(nodeIds: readonly string[], since: number): Promise<Map<string, Sample>>;
  /** Drops what is wholly older. @returns how many slices went */
  dropBefore(time: number): Promise<number>;
  stats(): SampleStats;
  /** Keeps what was handed in, and lets go of files and connections. */
  close(): Promise<void>;
}

export interface SampleStats {
  /** Samples handed in and not committed yet. */
  readonly queued: number;
  readonly stored: number;
  readonly commits: number;
  readonly failed: number;
  /** Why nothing can be stored, or the last commit failed; null: all is well. */
  readonly trouble: string | null;
}

/** What a bucket holds of one measure; null where no sample had it. */
export type BucketRow = { readonly bucket: number } & {
  readonly [M in MeasureName as `${M}_value`]: number | null;
} & { readonly [M in MeasureName as `${M}_count`]: number };

/**
 * The select list of a {@link BucketRow} besides the bucket itself.
 * @param last of a column, its value in the latest row that has one
 */
export const bucketColumns = (last: (column: string) => string): string =>
  measureNames
    .map((name) => {
      const value = countingMeasures.has(name) ? last(name) : `cast(avg(${name}) as double precision)`;
      return `${value} as ${name}_value, count(${name}) as ${name}_count`;
    })
    .join(', ');

/** Buckets from parts of one order: what two neighbours hold of the same bucket is put together. */
export function mergeBuckets(rows: readonly BucketRow[]): Sample[] {
  const merged: Sample[] = [];
  for (let first = 0; first < rows.length; ) {
    const { bucket } = rows[first]!;
    let end = first + 1;
    while (end < rows.length && rows[end]!.bucket === bucket) end++;
    merged.push(averageOf(bucket, rows.slice(first, end)));
    first = end;
  }
  return merged;
}

function averageOf(bucket: number, rows: readonly BucketRow[]): Sample {
  const sample: Record<string, number | null> = { collected_at: bucket };
  for (const name of measureNames) {
    let sum = 0;
    let count = 0;
    for (const row of rows) {
      if (countingMeasures.has(name)) {
        // Later parts come later.
        if (row[`${name}_count`] > 0) sum = row[`${name}_value`] ?? 0;
        count ||= Math.min(1, row[`${name}_count`]);
        continue;
      }
      sum += (row[`${name}_value`] ?? 0) * row[`${name}_count`];
      count += row[`${name}_count`];
    }
    const average = count === 0 ? null : sum / count;
    sample[name] = average === null || fractionalMeasures.has(name) ? average : Math.round(average);
  }
  return sample as unknown as Sample;
}

/** A row of samples as a sample: in answers the fields come in one order. */
export function sampleOf(row: Readonly<Record<keyof Sample, number | null>>): Sample {
  const sample: Record<string, number | null> = { collected_at: row.collected_at };
  for (const name of measureNames) sample[name] = row[name];
  return sample as unknown as Sample;
}
