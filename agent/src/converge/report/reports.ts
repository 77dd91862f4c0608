import type { ResourceResult } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';

/** Groups reports into spool entries: one for a small operation, several of limited size for a large one. */

/** Target size of an entry in bytes of JSON: half of what may be sent without an acknowledgment. */
const entryBytes = 4 * 1024;
const maxReports = 64;
const maxResults = 256;

type Output = Extract<Report, { type: 'output' }>;
/**
 * Maximum length of the output in a result, in characters. Longer output gets its own entry, which can be dropped
 * separately.
 */
const maxInlineOutput = 1024;

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) + 1;

/**
 * Groups reports into entries.
 * @param reports in order; adjacent results of one operation are merged
 */
export function groupReports(reports: readonly Report[]): Report[][] {
  const entries: Report[][] = [];
  let entry: Report[] = [];
  let bytes = 0;
  const close = (): void => {
    if (entry.length > 0) entries.push(entry);
    entry = [];
    bytes = 0;
  };
  const add = (report: Report, size: number): void => {
    if (entry.length > 0 && (bytes + size > entryBytes || entry.length === maxReports)) close();
    entry.push(report);
    bytes += size;
  };
  const addResult = (operationId: string, position: number, result: ResourceResult): void => {
    const size = sizeOf(result);
    const last = entry.at(-1);
    const follows =
      last?.type === 'results' &&
      last.operation_id === operationId &&
      last.position + last.results.length === position &&
      last.results.length < maxResults;
    if (follows && bytes + size <= entryBytes) {
      last.results.push(result);
      bytes += size;
      return;
    }
    add({ type: 'results', operation_id: operationId, position, results: [result] }, size + 96);
  };
  for (const report of reports) {
    if (report.type === 'results')
      report.results.forEach((result, i) => {
        addResult(report.operation_id, report.position + i, result);
      });
    else if (isLargeOutput(report)) {
      close();
      entries.push([report]);
    } else add(report, sizeOf(report));
  }
  close();
  return entries;
}

const isLargeOutput = (report: Report): report is Output =>
  report.type === 'output' && report.stdout.length + report.stderr.length > maxInlineOutput;

/** Reports whether an entry contains only output, which may be dropped. */
export const isProgress = (reports: readonly Report[]): boolean => reports.every(isLargeOutput);
