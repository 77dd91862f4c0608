import { nameLengths, resourceActions, resourceStatuses } from '../operation/operation.ts';
import type { AgentMessage } from './agent-message.ts';
import { limits } from './limits.ts';

/**
 * Recognizes the reports that thousands of agents send at the same time: accepted, results without details, and
 * finished. Recognizing such a message takes a tenth of the time of its validation with the schema. The schema
 * validates all other messages.
 *
 * @returns true only if the message has the type of its schema, with the fields in the same order; false does not mean
 *   that the schema refuses it
 */
export function isPlainReport(json: unknown): json is Extract<AgentMessage, { type: 'report' }> {
  if (!hasFields(json, messageFields) || json.type !== 'report' || !isCount(json.seq) || json.seq === 0) return false;
  return isList(json.reports, 64, isReport);
}

type Fields = Readonly<Record<string, unknown>>;

const messageFields = ['type', 'seq', 'reports'];
const acceptedFields = ['type', 'operation_id'];
const resultsFields = ['type', 'operation_id', 'position', 'results'];
const finishedFields = ['type', 'operation_id', 'status', 'summary', 'error', 'started_at', 'finished_at'];
const summaryFields = ['total', 'unchanged', 'changed', 'removed', 'failed', 'skipped'];
const resultFields = [
  'module',
  'id',
  'type',
  'identity',
  'action',
  'status',
  'changes',
  'diff',
  'triggered_by',
  'corrective',
  'message',
  'duration_ms',
  'sensitive',
];

/** Reports whether a parsed JSON value is an object with exactly these fields in this order. */
function hasFields(value: unknown, fields: readonly string[]): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  let index = 0;
  for (const field in value) if (field !== fields[index++]) return false;
  return index === fields.length;
}

const isList = (value: unknown, max: number, isElement: (element: unknown) => boolean): boolean =>
  Array.isArray(value) && value.length >= 1 && value.length <= max && value.every(isElement);
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isNullOrText = (value: unknown): boolean => value === null || (typeof value === 'string' && value.length <= 8192);
const isName = (value: unknown, max: number): boolean =>
  typeof value === 'string' && value.length <= max && value.isWellFormed() && !value.includes('\u0000');

const actions: ReadonlySet<unknown> = new Set(resourceActions);
const statuses: ReadonlySet<unknown> = new Set(resourceStatuses);
const ends: ReadonlySet<unknown> = new Set(['succeeded', 'failed', 'cancelled']);

function isReport(report: unknown): boolean {
  if (hasFields(report, acceptedFields)) return report.type === 'accepted' && isOperationId(report.operation_id);
  if (hasFields(report, resultsFields))
    return (
      report.type === 'results' &&
      isOperationId(report.operation_id) &&
      isCount(report.position) &&
      report.position <= limits.maxResults &&
      isList(report.results, 256, isResult)
    );
  return (
    hasFields(report, finishedFields) &&
    report.type === 'finished' &&
    isOperationId(report.operation_id) &&
    ends.has(report.status) &&
    hasFields(report.summary, summaryFields) &&
    Object.values(report.summary).every(isCount) &&
    isNullOrText(report.error) &&
    Number.isSafeInteger(report.started_at) &&
    Number.isSafeInteger(report.finished_at)
  );
}

const isOperationId = (value: unknown): boolean => typeof value === 'string' && value.length === 26;

const isResult = (result: unknown): boolean =>
  hasFields(result, resultFields) &&
  isName(result.module, nameLengths.module) &&
  (result.id === null || isName(result.id, nameLengths.id)) &&
  isName(result.type, nameLengths.type) &&
  isName(result.identity, nameLengths.identity) &&
  actions.has(result.action) &&
  statuses.has(result.status) &&
  isEmptyList(result.changes) &&
  result.diff === null &&
  isEmptyList(result.triggered_by) &&
  typeof result.corrective === 'boolean' &&
  isNullOrText(result.message) &&
  Number.isFinite(result.duration_ms) &&
  (result.duration_ms as number) >= 0 &&
  typeof result.sensitive === 'boolean';
