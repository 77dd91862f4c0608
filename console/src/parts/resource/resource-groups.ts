import type { ResourceResult, Summary } from '@muster/protocol';
import type { Tone } from '../badge.tsx';

/** Groups, filters, and describes an operation's results. */

/** Whether the results come from an apply, a plan, or a drift check. */
export type ResultKind = 'apply' | 'plan' | 'drift';

export type Show = 'all' | 'changed' | 'failed';

export interface KeyedResult {
  /** Identifies the result in links. */
  readonly key: string;
  readonly result: ResourceResult;
}

export interface ModuleGroup {
  readonly module: string;
  readonly results: readonly KeyedResult[];
}

export const hasFailed = ({ status }: ResourceResult): boolean => status === 'failed' || status === 'unknown';
export const hasChanged = ({ status }: ResourceResult): boolean => status === 'changed' || status === 'would_change';

/**
 * Adds keys to results: `module/identity`, or `module/type:identity` if two resources in a module have this identity.
 */
export function keyedResults(results: readonly ResourceResult[]): KeyedResult[] {
  const short = ({ module, identity }: ResourceResult) => `${module}/${identity}`;
  const seen = new Map<string, number>();
  for (const result of results) seen.set(short(result), (seen.get(short(result)) ?? 0) + 1);
  return results.map((result) => ({
    key: seen.get(short(result)) === 1 ? short(result) : `${result.module}/${result.type}:${result.identity}`,
    result,
  }));
}

/** Finds the result that a link names. If two resources have the same `module/identity`, returns the first one. */
export const resultAt = (keyed: readonly KeyedResult[], key: string): KeyedResult | null =>
  keyed.find((each) => each.key === key) ??
  keyed.find(({ result }) => `${result.module}/${result.identity}` === key) ??
  null;

/** Groups results by module, in execution order. */
export function groupsByModule(keyed: readonly KeyedResult[]): ModuleGroup[] {
  const groups = new Map<string, KeyedResult[]>();
  for (const each of keyed) {
    const group = groups.get(each.result.module);
    if (group === undefined) groups.set(each.result.module, [each]);
    else group.push(each);
  }
  return [...groups].map(([module, results]) => ({ module, results }));
}

export function shownResults(keyed: readonly KeyedResult[], show: Show, search: string): readonly KeyedResult[] {
  const query = search.trim().toLowerCase();
  return keyed.filter(({ result }) => {
    if (show === 'failed' && !hasFailed(result)) return false;
    if (show === 'changed' && !hasFailed(result) && !hasChanged(result)) return false;
    return query === '' || `${result.identity} ${result.id ?? ''} ${result.type}`.toLowerCase().includes(query);
  });
}

const did: Readonly<Record<ResourceResult['action'], string>> = {
  none: 'changed',
  create: 'created',
  update: 'updated',
  remove: 'removed',
  run: 'ran',
  reload: 'reloaded',
  restart: 'restarted',
};
const drifted: Readonly<Record<ResourceResult['action'], string>> = {
  none: 'differs',
  create: 'missing',
  update: 'differs',
  remove: 'unexpected',
  run: 'would run',
  reload: 'would reload',
  restart: 'would restart',
};

/** Describes a resource's outcome in one or two words. */
export function outcomeOf({ action, status }: ResourceResult, resultKind: ResultKind): { word: string; tone: Tone } {
  switch (status) {
    case 'failed':
      return { word: action === 'none' ? 'failed' : `${action} failed`, tone: 'bad' };
    case 'unknown':
      return { word: 'may have run partially', tone: 'bad' };
    case 'skipped':
      return { word: 'skipped', tone: 'neutral' };
    case 'unchanged':
      return { word: 'unchanged', tone: 'neutral' };
  }
  if (status === 'changed') return { word: did[action], tone: action === 'remove' ? 'warn' : 'good' };
  const tone = action === 'create' ? 'good' : action === 'remove' ? 'bad' : action === 'update' ? 'warn' : 'info';
  if (resultKind === 'drift') return { word: drifted[action], tone: 'warn' };
  return { word: action === 'none' ? 'would change' : `would ${action}`, tone };
}

/** Returns the headers for the columns with the old and new values. */
export const columnsOf = (resultKind: ResultKind): readonly [from: string, to: string] =>
  resultKind === 'drift' ? ['Found', 'Expected'] : resultKind === 'plan' ? ['Now', 'Would be'] : ['Before', 'After'];

/**
 * Describes a trigger, for example `file /etc/nginx.conf`.
 * @param id relative to the result's module, or with the name of another module
 */
export function triggerText(id: string, { module }: ResourceResult, all: readonly ResourceResult[]): string {
  const by =
    all.find((each) => each.id === id && each.module === module) ??
    all.find((each) => each.id === id || `${each.module}.${each.id}` === id);
  return by === undefined ? id : `${by.type} ${by.identity}`;
}

/** Reports whether the result has details to expand. */
export const hasDetail = ({ changes, diff, message, triggered_by }: ResourceResult): boolean =>
  changes.length > 0 || (diff !== null && diff !== '') || message !== null || triggered_by.length > 0;

/** Maximum total number of lines in the changes and diffs that are initially expanded. */
const maxOpenLines = 1_200;

/**
 * Returns the keys of the results to expand initially: up to 200 failures, and changes up to the maximum number of
 * lines.
 */
export function openAtFirst(keyed: readonly KeyedResult[]): Set<string> {
  const open = new Set<string>();
  let lines = 0;
  for (const { key, result } of keyed) {
    if (hasFailed(result) && open.size < 200) open.add(key);
    else if (hasChanged(result) && hasDetail(result)) {
      lines += 3 + result.changes.length + (result.diff === null ? 0 : result.diff.split('\n').length);
      if (lines <= maxOpenLines) open.add(key);
    }
  }
  return open;
}

/** A single result, or consecutive unchanged results folded into one line. */
export type Piece = { readonly kind: 'one'; readonly each: KeyedResult } | FoldedPiece;
export interface FoldedPiece {
  readonly kind: 'folded';
  readonly status: 'unchanged' | 'skipped';
  readonly results: readonly KeyedResult[];
}

/**
 * Folds unchanged and skipped results.
 * @param namedKey key of the result in the URL fragment, which is never folded
 */
export function piecesOf(results: readonly KeyedResult[], namedKey: string | null): Piece[] {
  const pieces: (Piece & { results?: KeyedResult[] })[] = [];
  for (const each of results) {
    const { status } = each.result;
    const folds =
      each.key !== namedKey && (status === 'unchanged' || (status === 'skipped' && !hasDetail(each.result)));
    const last = pieces.at(-1);
    if (!folds) pieces.push({ kind: 'one', each });
    else if (last?.kind === 'folded' && last.status === status) last.results.push(each);
    else pieces.push({ kind: 'folded', status: status as FoldedPiece['status'], results: [each] });
  }
  return pieces;
}

export interface SummaryPart {
  readonly text: string;
  readonly tone: Tone;
}

/** Returns a summary's nonzero counts as text. */
export function summaryParts(summary: Summary, resultKind: ResultKind): SummaryPart[] {
  const change = resultKind === 'plan' ? 'to change' : resultKind === 'drift' ? 'drifted' : 'changed';
  const parts: (SummaryPart & { count: number })[] = [
    { count: summary.failed, text: `${summary.failed} failed`, tone: 'bad' },
    { count: summary.changed, text: `${summary.changed} ${change}`, tone: resultKind === 'apply' ? 'good' : 'warn' },
    {
      count: summary.removed,
      text: `${summary.removed} ${resultKind === 'plan' ? 'to remove' : resultKind === 'drift' ? 'unexpected' : 'removed'}`,
      tone: resultKind === 'plan' ? 'bad' : 'warn',
    },
    { count: summary.skipped, text: `${summary.skipped} skipped`, tone: 'neutral' },
    {
      count: summary.unchanged,
      text: `${summary.unchanged} ${resultKind === 'drift' ? 'in sync' : 'unchanged'}`,
      tone: 'neutral',
    },
  ];
  return parts.filter(({ count }) => count > 0).map(({ text, tone }) => ({ text, tone }));
}
