import { machine } from 'node:os';
import { pythonName } from '@muster/protocol/python-version';
import { parseSpecifiers, satisfies } from './version-specifiers.ts';

/** Evaluates environment markers, such as `python_version < "3.11"`, as PEP 508 defines them. */

/** Values of the variables in markers; null for an unknown one. */
export type MarkerVariables = Readonly<Record<string, string | null>>;

/**
 * Returns the variables of a virtual environment of CPython on Linux.
 * @param python version of Python, such as `3.11.2`; null if unknown
 */
export const markerVariables = (python: string | null): MarkerVariables => ({
  python_version: python?.split('.').slice(0, 2).join('.') ?? null,
  python_full_version: python,
  os_name: 'posix',
  sys_platform: 'linux',
  platform_system: 'Linux',
  platform_machine: machine(),
  platform_python_implementation: 'CPython',
  implementation_name: 'cpython',
  extra: '',
});

export type Marker = { is: 'and' | 'or'; sides: readonly Marker[] } | Comparison;
type Comparison = { is: 'comparison'; left: Operand; operator: string; right: Operand };
type Operand = { variable: string } | { text: string };

/**
 * Texts have only printable ASCII characters, because pip splits lines at others, and no "$", because pip expands
 * `${NAME}`.
 */
const token = /\s*(?:(\(|\))|("[ !#%-[\]-~]*"|'[ -#%&(-[\]-~]*')|(===|==|~=|!=|<=|>=|<|>)|([A-Za-z_]+))/y;
const maxDepth = 20;

/** Parses a marker; null if it has another form, or a variable that is unknown. */
export function parseMarker(text: string): Marker | null {
  const tokens: string[] = [];
  token.lastIndex = 0;
  for (const end = text.trimEnd().length; token.lastIndex < end; ) {
    const match = token.exec(text);
    if (match === null) return null;
    tokens.push(match[0].trim());
  }
  const known = markerVariables(null);
  let at = 0;
  const operand = (): Operand | null => {
    const next = tokens[at++] ?? '';
    if (/^["']/.test(next)) return { text: next.slice(1, -1) };
    return Object.hasOwn(known, next) ? { variable: next } : null;
  };
  const operator = (): string | null => {
    const next = tokens[at++] ?? '';
    if (next === 'not') return tokens[at++] === 'in' ? 'not in' : null;
    return next === 'in' || /^[=~!<>]/.test(next) ? next : null;
  };
  const atom = (depth: number): Marker | null => {
    if (tokens[at] === '(') {
      at++;
      const inner = depth < maxDepth ? series('or', depth + 1) : null;
      return tokens[at++] === ')' ? inner : null;
    }
    const left = operand();
    const how = left === null ? null : operator();
    const right = how === null ? null : operand();
    return left === null || how === null || right === null ? null : { is: 'comparison', left, operator: how, right };
  };
  const series = (is: 'and' | 'or', depth: number): Marker | null => {
    const sides: Marker[] = [];
    do {
      const side = is === 'or' ? series('and', depth) : atom(depth);
      if (side === null) return null;
      sides.push(side);
    } while (tokens[at] === is && ++at > 0);
    return sides.length === 1 ? (sides[0] as Marker) : { is, sides };
  };
  const marker = series('or', 0);
  return at === tokens.length ? marker : null;
}

const noExtras: ReadonlySet<string> = new Set(['']);

/**
 * Returns whether a marker applies; null if that depends on unknown variables.
 * @param extras normalized names of the requested extras. All are compared at once, so that the time is linear
 */
export function evaluateMarker(marker: Marker, variables: MarkerVariables, extras = noExtras): boolean | null {
  if (marker.is === 'comparison') {
    if (concernsExtra(marker)) return hasExtra(marker, extras);
    const textOf = (operand: Operand) => ('text' in operand ? operand.text : (variables[operand.variable] ?? null));
    const [left, right] = [textOf(marker.left), textOf(marker.right)];
    return left === null || right === null ? null : compares(left, marker.operator, right);
  }
  const results = marker.sides.map((side) => evaluateMarker(side, variables, extras));
  const decisive = marker.is === 'or';
  if (results.includes(decisive)) return decisive;
  return results.includes(null) ? null : !decisive;
}

/** Reports whether a marker has the variable `extra`. */
export const concernsExtra = (marker: Marker): boolean =>
  marker.is === 'comparison'
    ? [marker.left, marker.right].some((operand) => 'variable' in operand && operand.variable === 'extra')
    : marker.sides.some(concernsExtra);

function hasExtra({ left, operator, right }: Comparison, extras: ReadonlySet<string>): boolean | null {
  const text = 'text' in left ? left.text : 'text' in right ? right.text : null;
  if (text === null || (operator !== '==' && operator !== '!=')) return null;
  return extras.has(pythonName(text)) === (operator === '==');
}

function compares(left: string, operator: string, right: string): boolean {
  if (operator === 'in') return right.includes(left);
  if (operator === 'not in') return !right.includes(left);
  const specifiers = parseSpecifiers(`${operator}${right}`);
  if (specifiers !== null && specifiers.length === 1) return satisfies(left, specifiers);
  switch (operator) {
    case '==':
    case '===':
      return left === right;
    case '!=':
      return left !== right;
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    default:
      return false;
  }
}
