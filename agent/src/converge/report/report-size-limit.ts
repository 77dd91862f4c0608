import { boundedName, nameLengths, type ResourceResult, resourceActions } from '@muster/protocol';
import { limits, type Report, reportsSchema } from '@muster/protocol/wire';

/**
 * Limits reports to what the orchestrator accepts, because a refused report would be resent forever and block all later
 * reports.
 */

const maxText = 8192;
const maxValue = 4096;
const maxTriggers = 256;
const maxChanges = 64;
const maxField = 128;

/** Truncates a long text and marks the end with an ellipsis. */
const shortened = (text: string, length: number): string =>
  // Truncation may split a surrogate pair.
  text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text;

const orNull = (text: string | null, length: number): string | null => (text === null ? null : shortened(text, length));

/** Truncates a result's strings and lists to their maximum lengths. */
export const withinCaps = (result: ResourceResult): ResourceResult => ({
  ...result,
  module: boundedName(result.module, nameLengths.module),
  id: result.id === null ? null : boundedName(result.id, nameLengths.id),
  type: boundedName(result.type, nameLengths.type),
  identity: boundedName(result.identity, nameLengths.identity),
  changes: result.changes.slice(0, maxChanges).map(({ field, from, to }) => ({
    field: shortened(field, maxField),
    from: orNull(from, maxValue),
    to: orNull(to, maxValue),
  })),
  triggered_by: result.triggered_by.slice(0, maxTriggers).map((id) => shortened(id, nameLengths.id)),
  message: orNull(result.message, maxText),
});

const fits = (report: Report): boolean => reportsSchema.safeParse([report]).success;

/**
 * Truncates a result to the limits.
 * @returns a failed result with an explanation if the result is still invalid
 */
export function fittingResult(result: ResourceResult, operationId: string): ResourceResult {
  const isValid = (one: ResourceResult): boolean =>
    fits({ type: 'results', operation_id: operationId, position: 0, results: [one] });
  const capped = withinCaps(result);
  if (isValid(capped)) return capped;
  return {
    module: boundedName(result.module, nameLengths.module),
    id: null,
    type: boundedName(result.type, nameLengths.type),
    identity: boundedName(result.identity, nameLengths.identity),
    action: resourceActions.includes(result.action) ? result.action : 'none',
    status: 'failed',
    changes: [],
    diff: null,
    triggered_by: [],
    corrective: false,
    message: `it ended as "${boundedName(result.status, nameLengths.type)}", but its result is too large for a report`,
    duration_ms: 0,
    sensitive: result.sensitive !== false,
  };
}

/** Truncates a report to the limits. For results, use `fittingResult`. */
export function fittingReport<T extends Exclude<Report, { type: 'results' }>>(report: T): T {
  if (report.type === 'output') {
    const { stdout, stderr, resource } = report;
    const [out, err] = [stdout, stderr].map((text) => text.slice(0, limits.maxScriptOutputLength)) as [string, string];
    const truncated = report.truncated || out.length < stdout.length || err.length < stderr.length;
    return {
      ...report,
      resource: boundedName(resource, limits.outputResourceLength),
      stdout: out,
      stderr: err,
      truncated,
    };
  }
  return report.type === 'finished' ? { ...report, error: orNull(report.error, maxText) } : report;
}
