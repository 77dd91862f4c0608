import type { Position } from './yaml-position.ts';

/** Finds the expression at an offset in a module. */

export interface ExpressionPosition {
  /** Start offset of the name at the offset. */
  readonly from: number;
  /** The name up to the offset, such as `param.po`. */
  readonly word: string;
  /** The expression before the name. */
  readonly before: string;
  /** `text`: in `${{ … }}` within text; `value`: a value that is itself an expression, such as `when`. */
  readonly kind: 'text' | 'value';
}

/** Maximum number of characters to read before the offset. */
const maximumLine = 1000;

const wordForm = /[A-Za-z_][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]*)*$/;

/** Reports whether an expression ends inside quotes. */
function isQuoted(expression: string): boolean {
  let quote: string | null = null;
  // In a quoted YAML string, quotes in an expression are escaped.
  const characters = expression.replaceAll('\\"', '"');
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at];
    if (quote === null && (character === '"' || character === "'")) quote = character;
    else if (quote !== null && character === '\\') at += 1;
    else if (character === quote) quote = null;
  }
  return quote !== null;
}

function positionIn(expression: string, offset: number, kind: ExpressionPosition['kind']): ExpressionPosition | null {
  if (isQuoted(expression)) return null;
  const found = wordForm.exec(expression)?.[0] ?? '';
  // In a longer expression, a slash or a hyphen is an operator.
  const isSole = expression.trim() === found;
  const word = isSole ? found : (/[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]*)*$/.exec(found)?.[0] ?? '');
  return { from: offset - word.length, word, before: expression.slice(0, expression.length - word.length), kind };
}

/**
 * Returns the expression at an offset; null if there is none.
 * @param position of the YAML value at the offset
 */
export function expressionAt(text: string, offset: number, position: Position | null): ExpressionPosition | null {
  const start = Math.max(text.lastIndexOf('\n', offset - 1) + 1, offset - maximumLine);
  const line = text.slice(start, offset);
  const open = line.lastIndexOf('${{');
  if (open !== -1 && line[open - 1] !== '$' && !line.slice(open).includes('}}'))
    return positionIn(line.slice(open + 3), offset, 'text');
  if (position === null || position.kind !== 'value' || !isExpressionKey(position.path)) return null;
  const value = text.slice(position.from, offset);
  return value.includes('${{') ? null : positionIn(value, offset, 'value');
}

/** Reports whether the value at a path is an expression without `${{`. */
function isExpressionKey(path: Position['path']): boolean {
  const key = path.at(-1);
  if (key === 'that') return path[0] === 'require';
  return key === 'when' || key === 'where' || (path.at(-2) === 'for_each' && typeof key === 'string');
}
