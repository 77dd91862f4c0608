import { measureNames, type Sample, sampleSchema } from '@muster/protocol';

/**
 * Encodes samples as lines of a file: a header with the agent's ID and the names of the measures, then one row per
 * sample. With these names, a different agent version can find the measures that it supports.
 */

export function linesOf(nodeId: string, samples: Iterable<Sample>): unknown[] {
  return [{ node_id: nodeId, measures: measureNames }, ...rowsOf(samples)];
}

/** Returns the rows without the header. */
export const rowsOf = (samples: Iterable<Sample>): unknown[] =>
  Array.from(samples, (sample) => [sample.collected_at, ...measureNames.map((name) => sample[name])]);

/**
 * Decodes lines.
 * @returns the samples with strictly ascending times, and the number of invalid lines; null if the samples belong to
 * another agent
 */
export function samplesOf(lines: readonly unknown[], nodeId: string): { samples: Sample[]; invalid: number } | null {
  const measures = measuresOf(lines[0], nodeId);
  if (measures === null) return null;
  const samples: Sample[] = [];
  for (const row of lines.slice(1)) {
    const sample = sampleOf(row, measures);
    // Skips invalid samples, because the orchestrator closes the link after it receives one.
    if (sample !== null && sample.collected_at > (samples.at(-1)?.collected_at ?? Number.NEGATIVE_INFINITY))
      samples.push(sample);
  }
  return { samples, invalid: lines.length - 1 - samples.length };
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
