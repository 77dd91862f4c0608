import { nameLengths, type ResourceResult, resourceActions, toldName } from '@muster/protocol';
import { limits, type Report, reportsSchema } from '@muster/protocol/wire';

/**
 * Keeps what is told within what the orchestrator takes. A report that it refuses would be sent again for ever and
 * keep everything behind it from being told.
 */

const maxText = 8192;
const maxValue = 4096;
const maxTriggers = 256;
const maxChanges = 64;
const maxField = 128;

/** The start of a text that is too long, with a sign that there is more. */
const shortened = (text: string, length: number): string =>
  // The cut may go through a character.
  text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text;

const orNull = (text: string | null, length: number): string | null => (text === null ? null : shortened(text, length));

/** The same result, with texts and lists no longer than may be told. */
export const withinCaps = (result: ResourceResult): ResourceResult => ({
  ...result,
  module: toldName(result.module, nameLengths.module),
  id: result.id === null ? null : toldName(result.id, nameLengths.id),
  type: toldName(result.type, nameLengths.type),
  identity: toldName(result.identity, nameLengths.identity),
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
 * @returns the result if it can be told; else a failed one that says that it could not, with what still can
 */
export function fittingResult(result: ResourceResult, operationId: string): ResourceResult {
  const told = (one: ResourceResult): boolean =>
    fits({ type: 'results', operation_id: operationId, position: 0, results: [one] });
  const capped = withinCaps(result);
  if (told(capped)) return capped;
  return {
    module: toldName(result.module, nameLengths.module),
    id: null,
    type: toldName(result.type, nameLengths.type),
    identity: toldName(result.identity, nameLengths.identity),
    action: resourceActions.includes(result.action) ? result.action : 'none',
    status: 'failed',
    changes: [],
    diff: null,
    triggered_by: [],
    corrective: false,
    message: `it ended as "${toldName(result.status, nameLengths.type)}", but what there is to tell about it does not fit a report`,
    duration_ms: 0,
    sensitive: result.sensitive !== false,
  };
}

/** The same report, cut to what can be told. Not for results. */
export function fittingReport<T extends Exclude<Report, { type: 'results' }>>(report: T): T {
  if (report.type === 'output') {
    const { stdout, stderr, resource } = report;
    const [out, err] = [stdout, stderr].map((text) => text.slice(0, limits.maxScriptOutputLength)) as [string, string];
    const truncated = report.truncated || out.length < stdout.length || err.length < stderr.length;
    return {
      ...report,
      resource: toldName(resource, limits.outputResourceLength),
      stdout: out,
      stderr: err,
      truncated,
    };
  }
  return report.type === 'finished' ? { ...report, error: orNull(report.error, maxText) } : report;
}
