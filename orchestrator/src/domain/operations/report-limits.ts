import { boundedName, type ResourceResult } from '@muster/protocol';
import { limits, type Report } from '@muster/protocol/wire';
import { toJson } from '../../store/json-text.ts';
import { rowBytes, weightOf, withoutDetails } from './kept-results.ts';
import { outputName, printOf, type SentNames } from './sent-names.ts';

/**
 * Decides how much of an operation's reports to store. Every operation can end, even if its agent reports too much:
 * beyond the limits, results lose their details, outputs lose their text, and removals lose their rows.
 */

export interface ReportLimits {
  /** Maximum number of bytes of results and outputs per operation. */
  readonly operationBytes: number;
  /**
   * Maximum number of bytes of removal rows without details that are stored after `operationBytes` is used up. Bounded,
   * because the agent can report any number of removals.
   */
  readonly removalBytes: number;
  /** Reason for omitting details, shown to operators. */
  readonly because: string;
}

const mebibyte = 1024 * 1024;

export const defaultLimits: ReportLimits = {
  operationBytes: 32 * mebibyte,
  removalBytes: 8 * mebibyte,
  because: `the results of the operation exceed ${32} MiB`,
};

/**
 * Returns the limits for an agent that has reached its daily limit, and for all agents while the disk is nearly full.
 */
export const reducedLimits = (because: string): ReportLimits => ({
  operationBytes: 64 * 1024,
  removalBytes: 64 * 1024,
  because,
});

/** Running totals of an operation's stored reports. */
export interface Tally {
  readonly bytes: number;
  readonly removalBytes: number;
  /**
   * Hashes of the names of removed resources, which may have output; null if unknown because another process received
   * them. All tallies of an operation share this set, which only grows.
   */
  readonly removals: Set<number> | null;
  /**
   * Position after the last stored result. Agents report results in order, so a result at an earlier position may be a
   * repetition.
   */
  readonly next: number;
}

export const newTally = (): Tally => ({ bytes: 0, removalBytes: 0, removals: new Set(), next: 0 });

/** The tally of an operation if another process may have stored some of its reports. */
export const unknownTally: Tally = { bytes: 0, removalBytes: 0, removals: null, next: Number.POSITIVE_INFINITY };

type Of<T extends Report['type']> = Extract<Report, { type: T }>;

/** A report that contradicts the dispatched operation. */
export interface Fault {
  readonly fault: string;
}

/** The names in the dispatched operation; null if unknown, in which case only sizes are checked. */
type Sent = SentNames | null;
type Kind = 'apply' | 'plan' | 'drift';

export interface AcceptedResult {
  readonly position: number;
  readonly result: ResourceResult;
  readonly text: string;
}

/**
 * Decides how much of a results report is stored.
 * @returns the results to store, or the error
 */
export function keepResults(
  report: Of<'results'>,
  kind: Kind,
  sent: Sent,
  tally: Tally,
  allowed: ReportLimits,
): { rows: AcceptedResult[]; tally: Tally } | Fault {
  const { operation_id, position: first, results } = report;
  const { removals } = tally;
  let { bytes, removalBytes, next } = tally;
  const rows: AcceptedResult[] = [];
  for (const [index, given] of results.entries()) {
    const position = first + index;
    const isRemoval = kind !== 'drift' && sent !== null && position >= sent.count;
    const fault = isRemoval ? removalFault(position, sent.count, given, sent) : faultOf(position, kind, given, sent);
    if (fault !== null) return { fault: `operation ${operation_id}: ${fault}` };
    next = Math.max(next, position + 1);
    const full: AcceptedResult = { position, result: given, text: toJson(given) };
    const weight = weightOf(full.text);
    if (bytes + weight <= allowed.operationBytes) {
      bytes += weight;
      rows.push(full);
    } else {
      const result = withoutDetails(given, allowed.because);
      const reduced = { position, result, text: toJson(result) };
      const chosen = isRemoval || sent === null ? weightOf(reduced.text) : 0;
      if (removalBytes + chosen > allowed.removalBytes) continue;
      removalBytes += chosen;
      rows.push(reduced);
    }
    if (isRemoval) removals?.add(printOf(outputName(given)));
  }
  return { rows, tally: { bytes, removalBytes, removals, next } };
}

function faultOf(position: number, kind: Kind, result: ResourceResult, sent: Sent): string | null {
  if (sent === null)
    return position < limits.maxResults ? null : `the result at position ${position} is beyond the maximum`;
  if (kind === 'drift') {
    if (position >= sent.count)
      return `the result at position ${position} is out of range: only ${sent.count} resources are part of the check`;
    return sent.has(result) ? null : `${named(result)} has a result, although it is not part of the check`;
  }
  return sent.isAt(position, result)
    ? null
    : `the result of ${named(result)} is at position ${position}, which belongs to another resource`;
}

/**
 * Returns the error in a removal, or null. Removals come after the sent resources. Only the agent knows which resources
 * it removed, because another orchestrator may have applied them.
 */
function removalFault(position: number, count: number, result: ResourceResult, sent: SentNames): string | null {
  if (position >= count + limits.maxResources)
    return `the result at position ${position} is out of range: only ${count} resources were sent`;
  return sent.has(result)
    ? `the result of ${named(result)} is at position ${position}, where only removals are allowed`
    : null;
}

const named = ({ type, identity }: ResourceResult): string => JSON.stringify(boundedName(`${type} ${identity}`, 100));

/**
 * Decides how much of an output report to store.
 * @returns the output to store, truncated if necessary, or null to store none; or the error
 */
export function keepOutput(
  report: Of<'output'>,
  sent: Sent,
  tally: Tally,
  allowed: ReportLimits,
): { output: Of<'output'> | null; tally: Tally } | Fault {
  const { operation_id, resource, stdout, stderr } = report;
  const isSent = sent?.hasOutput(resource) === true;
  if (sent !== null && !isSent && tally.removals !== null && !tally.removals.has(printOf(resource)))
    return {
      fault: `operation ${operation_id}: the output belongs to ${JSON.stringify(boundedName(resource, 100))}, which was not sent`,
    };
  // Counts the name twice, because the row and the index both store it.
  const row = rowBytes + 2 * Buffer.byteLength(resource);
  const bytes = tally.bytes + row + Buffer.byteLength(stdout) + Buffer.byteLength(stderr);
  if (bytes <= allowed.operationBytes) return { output: report, tally: { ...tally, bytes } };
  const removalBytes = isSent ? tally.removalBytes : tally.removalBytes + row;
  if (removalBytes > allowed.removalBytes) return { output: null, tally };
  return { output: { ...report, stdout: '', stderr: '', truncated: true }, tally: { ...tally, removalBytes } };
}
