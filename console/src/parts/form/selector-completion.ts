import { countedText } from '../count.ts';

/** Completes the key, operator, or value at the cursor in a selector. */

export interface Counted {
  readonly value: string;
  /** Number of agents with this key or value; null if unknown. */
  readonly count: number | null;
}

/** The fleet's keys and values. They are functions, so that they are computed only while the operator types. */
export interface SelectorVocabulary {
  /** Tag keys, and attributes such as `attr.distro`. */
  readonly keys: () => readonly Counted[];
  readonly values: (key: string) => readonly Counted[];
}

export interface CompletionOption {
  /** Text that replaces the range from `from` to `to`. */
  readonly insert: string;
  readonly label: string;
  readonly detail: string;
}

export interface Completion {
  readonly from: number;
  readonly to: number;
  /** Whether the start of the first option is already typed, so that Enter accepts it. */
  readonly hasPrefix: boolean;
  readonly options: readonly CompletionOption[];
}

const maxOptions = 50;

const operators: readonly CompletionOption[] = [
  { insert: '=', label: '=', detail: 'is' },
  { insert: '!=', label: '!=', detail: 'is not, or is absent' },
  { insert: ' in (', label: 'in (…)', detail: 'is one of' },
  { insert: ' notin (', label: 'notin (…)', detail: 'is none of, or is absent' },
  { insert: ' ', label: 'exists', detail: 'has any value' },
];

const key = '[A-Za-z0-9._/:-]+';
const afterOperator = new RegExp(`(?:^|\\s)(${key})!?=("(?:[^"\\\\]|\\\\.)*|[^\\s()"',=!]*)$`);
const inList = new RegExp(
  `(?:^|\\s)(${key})\\s+(?:in|notin)\\s*\\((?:[^()]*,)?\\s*("(?:[^"\\\\]|\\\\.)*|[^\\s()"',=!]*)$`,
);
const atKey = new RegExp(`(?:^|\\s)(!?)(${key})?$`);

/** Quotes a value if the selector grammar requires it. */
export const quoted = (value: string): string =>
  /^[^\s()"',=!]+$/.test(value) ? value : `"${value.replace(/[\\"]/g, '\\$&')}"`;

/** Sorts matches that start with the text before other matches. */
function found<T extends Counted>(all: readonly T[], text: string): readonly T[] {
  const query = text.toLowerCase();
  if (query === '') return all.slice(0, maxOptions);
  const begins: T[] = [];
  const containing: T[] = [];
  for (const each of all) {
    const at = each.value.toLowerCase().indexOf(query);
    if (at === 0) begins.push(each);
    else if (at > 0) containing.push(each);
  }
  return [...begins, ...containing].slice(0, maxOptions);
}

const agents = (count: number | null): string => (count === null ? '' : countedText(count, 'agent'));

/** @param cursor offset in the text, in UTF-16 code units */
export function completionAt(text: string, cursor: number, vocabulary: SelectorVocabulary): Completion | null {
  const before = text.slice(0, cursor);
  const list = inList.exec(before);
  const value = list ?? afterOperator.exec(before);
  if (value !== null) {
    const [, name = '', written = ''] = value;
    const query = written.replace(/^"/, '').replace(/\\(.)/g, '$1');
    const options = found(vocabulary.values(name), query).map(({ value, count }) => ({
      insert: list === null ? `${quoted(value)} ` : quoted(value),
      label: value === '' ? '""' : value,
      detail: agents(count),
    }));
    return { from: cursor - written.length, to: endOfWord(text, cursor), hasPrefix: query !== '', options };
  }
  const match = atKey.exec(before);
  if (match === null) return null;
  const [, not = '', written = ''] = match;
  const keys = vocabulary.keys();
  if (written !== '' && not === '' && cursor === text.length && keys.some(({ value }) => value === written))
    return { from: cursor, to: cursor, hasPrefix: false, options: operators };
  const options = found(keys, written).map(({ value, count }) => ({
    insert: not === '' ? value : `${value} `,
    label: value,
    detail: agents(count),
  }));
  return { from: cursor - written.length, to: endOfWord(text, cursor), hasPrefix: written !== '', options };
}

/** Returns the end of the word at the cursor, because a completion replaces the whole word. */
function endOfWord(text: string, cursor: number): number {
  const rest = /^[A-Za-z0-9._/:-]*/.exec(text.slice(cursor));
  return cursor + (rest?.[0].length ?? 0);
}
