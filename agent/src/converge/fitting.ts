import { type ResourceResult, resourceActions } from '@muster/protocol';
import { limits, type Report, reportsSchema } from '@muster/protocol/wire';

/**
 * Keeps what is told within what the orchestrator takes. A report that it refuses would be sent again for ever and
 * keep everything behind it from being told.
 */

const maxText = 8192;
const maxValue = 4096;
const maxTriggers = 256;
const maxChanges = 64;
const maxName = 256;
const maxModule = 128;
const maxType = 64;
const maxField = 128;
const maxOutputResource = 4300;

/** The start of a text that is too long, with a sign that there is more. */
const shortened = (text: string, length: number): string =>
  // The cut may go through a character.
  text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text;

/** A name as every database keeps it: well-formed, without U+0000. */
const named = (name: string, length: number): string =>
  shortened(name.toWellFormed().replaceAll('\0', '\uFFFD'), length);
const orNull = (text: string | null, length: number): string | null => (text === null ? null : shortened(text, length));

/** The same result, with texts and lists no longer than may be told. */
export const withinCaps = (result: ResourceResult): ResourceResult => ({
  ...result,
  module: named(result.module, maxModule),
  id: result.id === null ? null : named(result.id, maxName),
  type: named(result.type, maxType),
  identity: named(result.identity, maxValue),
  changes: result.changes.slice(0, maxChanges).map(({ field, from, to }) => ({
    field: shortened(field, maxField),
    from: orNull(from, maxValue),
    to: orNull(to, maxValue),
  })),
  triggered_by: result.triggered_by.slice(0, maxTriggers).map((id) => shortened(id, maxName)),
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
    module: named(result.module, maxModule),
    id: null,
    type: named(result.type, maxType),
    identity: named(result.identity, maxValue),
    action: resourceActions.includes(result.action) ? result.action : 'none',
    status: 'failed',
    changes: [],
    diff: null,
    triggered_by: [],
    corrective: false,
    message: `it ended as "${named(result.status, maxType)}", but what there is to tell about it does not fit a report`,
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
    return { ...report, resource: shortened(resource, maxOutputResource), stdout: out, stderr: err, truncated };
  }
  return report.type === 'finished' ? { ...report, error: orNull(report.error, maxText) } : report;
}
