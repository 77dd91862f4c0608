import { countingMeasures, fractionalMeasures, type MeasureName, measureNames, type Sample } from '@muster/protocol';

/**
 * Stores machine metrics. Samples are numerous, and losing a few is acceptable, so they are stored separately: with
 * SQLite, in a second file that is not synced on each commit; with PostgreSQL, in partitions.
 */
export interface SampleStore {
  /**
   * Stores one agent's samples, and resolves once they are committed. Samples from many agents share a commit. An
   * existing sample with the same time is not overwritten, so resending is safe.
   *
   * If this rejects with `storage_full` or `storage_unavailable`, none of the samples is stored.
   */
  add(nodeId: string, samples: readonly Sample[]): Promise<void>;
  /** Returns the newest samples at or after a time, oldest first. */
  since(nodeId: string, since: number, limit: number): Promise<Sample[]>;
  /**
   * Returns the newest buckets of `step` seconds, oldest first. A gauge is the average of its non-null values. A
   * counter is its last non-null value, because an average across a machine restart would be meaningless.
   */
  averages(nodeId: string, since: number, step: number, limit: number): Promise<Sample[]>;
  /** Returns the newest sample of each agent, if it is not older than the given time. */
  latest(nodeIds: readonly string[], since: number): Promise<Map<string, Sample>>;
  /** Drops chunks that end before a time. @returns the number of dropped chunks */
  dropBefore(time: number): Promise<number>;
  stats(): SampleStats;
  /** Stores queued samples, and closes files and connections. */
  close(): Promise<void>;
}

export interface SampleStats {
  readonly queued: number;
  readonly stored: number;
  readonly commits: number;
  readonly failed: number;
  /** Reason why samples cannot be stored or the last commit failed; null if neither is the case. */
  readonly trouble: string | null;
}

/** The values of each measure in a bucket. A value is null if it is null in all samples. */
export type BucketRow = { readonly bucket: number } & {
  readonly [M in MeasureName as `${M}_value`]: number | null;
} & { readonly [M in MeasureName as `${M}_count`]: number };

/**
 * Returns the select list of a {@link BucketRow}, without the bucket itself.
 * @param last returns SQL for the latest value of a column that is not null
 */
export const bucketColumns = (last: (column: string) => string): string =>
  measureNames
    .map((name) => {
      const value = countingMeasures.has(name) ? last(name) : `cast(avg(${name}) as double precision)`;
      return `${value} as ${name}_value, count(${name}) as ${name}_count`;
    })
    .join(', ');

/** Merges the two parts of a bucket that spans adjacent chunks. */
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
        // The rows are ordered by time, so the last value is used.
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

/** Converts a row to a sample, with the fields in the order that the API uses. */
export function sampleOf(row: Readonly<Record<keyof Sample, number | null>>): Sample {
  const sample: Record<string, number | null> = { collected_at: row.collected_at };
  for (const name of measureNames) sample[name] = row[name];
  return sample as unknown as Sample;
}
