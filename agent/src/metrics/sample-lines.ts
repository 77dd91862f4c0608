import { measureNames, type Sample, sampleSchema } from '@muster/protocol';

/**
 * Samples as lines of a file: first whose they are and what is measured, then the numbers of each. Whoever reads goes by
 * the names, so that an agent of another version, after an upgrade or back from one, finds what it knows.
 */

export function linesOf(nodeId: string, samples: Iterable<Sample>): unknown[] {
  return [{ node_id: nodeId, measures: measureNames }, ...rowsOf(samples)];
}

/** Without what the first line says. */
export const rowsOf = (samples: Iterable<Sample>): unknown[] =>
  Array.from(samples, (sample) => [sample.collected_at, ...measureNames.map((name) => sample[name])]);

/**
 * @returns the samples, their times strictly ascending, and how many lines are none; null when they are not those of this
 *   agent
 */
export function samplesOf(lines: readonly unknown[], nodeId: string): { samples: Sample[]; strange: number } | null {
  const measures = measuresOf(lines[0], nodeId);
  if (measures === null) return null;
  const samples: Sample[] = [];
  for (const row of lines.slice(1)) {
    const sample = sampleOf(row, measures);
    // What is not right would end each link that it is sent over.
    if (sample !== null && sample.collected_at > (samples.at(-1)?.collected_at ?? Number.NEGATIVE_INFINITY))
      samples.push(sample);
  }
  return { samples, strange: lines.length - 1 - samples.length };
}

function measuresOf(header: unknown, nodeId: string): readonly unknown[] | null {
  if (typeof header !== 'object' || header === null) return null;
  const { node_id, measures } = header as Record<string, unknown>;
  return node_id === nodeId && Array.isArray(measures) ? measures : null;
}

function sampleOf(row: unknown, measures: readonly unknown[]): Sample | null {
  if (!Array.isArray(row)) return null;
  const [collected_at, ...values] = row as unknown[];
  const found = Object.fromEntries(measureNames.map((name) => [name, values[measures.indexOf(name)] ?? null]));
  const parsed = sampleSchema.safeParse({ collected_at, ...found });
  return parsed.success ? parsed.data : null;
}
