import { z } from 'zod';

/** Operations and their results, as used by the API, the link, and the store. */

export const operationKinds = ['apply', 'plan', 'drift'] as const;
export type OperationKind = (typeof operationKinds)[number];

export const resourceActions = ['none', 'create', 'update', 'remove', 'run', 'reload', 'restart'] as const;
export type ResourceAction = (typeof resourceActions)[number];

export const resourceStatuses = ['unchanged', 'changed', 'would_change', 'failed', 'skipped', 'unknown'] as const;
export type ResourceStatus = (typeof resourceStatuses)[number];

/** Maximum length of a diff, in characters. A longer diff is truncated and ends with a line that indicates this. */
export const maxDiffLength = 64 * 1024;

/** Returns the schema for a name. Every database stores such a name unchanged, so it can identify an object. */
const name = (length: number) =>
  z
    .string()
    .max(length)
    .refine((text) => text.isWellFormed() && !text.includes('\u0000'), 'must be well-formed text without U+0000');

/** Maximum lengths of the names in a result, in characters. */
export const nameLengths = { module: 128, id: 256, type: 64, identity: 4096 } as const;

/**
 * Converts a name for a result or an output: makes it well-formed, replaces U+0000, and truncates it to `length`. The
 * agent and the orchestrator both use this function, so that names in reports and in operations can be compared.
 */
export function boundedName(text: string, length: number): string {
  const whole = (text.isWellFormed() ? text : text.toWellFormed()).replaceAll('\u0000', '\ufffd');
  return whole.length > length ? `${whole.slice(0, length - 1).toWellFormed()}…` : whole;
}

export const fieldChangeSchema = z.strictObject({
  field: z.string().max(128),
  from: z.string().max(4096).nullable().describe('null if it was absent or is unknown'),
  to: z.string().max(4096).nullable().describe('null if it is absent or unknown'),
});
export type FieldChange = z.infer<typeof fieldChangeSchema>;

export const resourceResultSchema = z
  .strictObject({
    module: name(nameLengths.module),
    id: name(nameLengths.id).nullable(),
    type: name(nameLengths.type),
    identity: name(nameLengths.identity),
    action: z.enum(resourceActions),
    status: z.enum(resourceStatuses),
    changes: z.array(fieldChangeSchema).max(64),
    diff: z
      .string()
      .max(maxDiffLength + 256)
      .nullable()
      .describe('unified diff of the content'),
    triggered_by: z
      .array(z.string().max(256))
      .max(256)
      .describe('ids of the resources whose changes triggered the action'),
    corrective: z.boolean().describe('whether the change repairs drift; false if the desired state is new'),
    message: z.string().max(8192).nullable(),
    duration_ms: z.number().nonnegative(),
    sensitive: z.boolean(),
  })
  .meta({ id: 'ResourceResult' });
export type ResourceResult = z.infer<typeof resourceResultSchema>;

const count = z.number().int().nonnegative();
export const summarySchema = z
  .strictObject({
    total: count,
    unchanged: count,
    changed: count.describe('in a plan, the number of resources that would change'),
    removed: count,
    failed: count.describe('includes resources with the status `unknown`, which may be partly applied'),
    skipped: count,
  })
  .meta({ id: 'Summary', description: 'Each resource is counted once.' });
export type Summary = z.infer<typeof summarySchema>;

/**
 * Counts each resource once.
 * @param results all results of one operation
 */
export function summarise(results: readonly ResourceResult[]): Summary {
  const summary: Summary = { total: results.length, unchanged: 0, changed: 0, removed: 0, failed: 0, skipped: 0 };
  for (const { status, action } of results) {
    if (status === 'failed' || status === 'unknown') summary.failed++;
    else if (status === 'skipped') summary.skipped++;
    else if (status === 'unchanged') summary.unchanged++;
    else if (action === 'remove') summary.removed++;
    else summary.changed++;
  }
  return summary;
}
