import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { ExpressionError, entriesOf, maximumOutput, timestampText } from '../values.ts';

/** Formats text like the CEL strings extension: %s, %d, %f and %e with a precision, %x, %X, %o, %b, %%. */
export function format(text: string, values: readonly unknown[]): string {
  let index = 0;
  let length = text.length;
  return text.replace(/%(?:\.(\d{1,2}))?(.?)/gs, (clause, precision: string | undefined, verb: string) => {
    if (verb === '%') return '%';
    if (index >= values.length) throw new ExpressionError(`format has no value for ${clause}`);
    const piece = formatted(verb, values[index], precision);
    index += 1;
    length += piece.length;
    if (length > maximumOutput) throw tooLong();
    return piece;
  });
}

const tooLong = (): ExpressionError => new ExpressionError('format yields more than 1 MiB: shorten the values');

const bases: Readonly<Record<string, number>> = { d: 10, x: 16, X: 16, o: 8, b: 2 };

function formatted(verb: string, value: unknown, precision: string | undefined): string {
  if (verb === 's') return textIn(value, { left: maximumOutput });
  const base = Object.hasOwn(bases, verb) ? bases[verb] : undefined;
  if (base !== undefined) {
    const digits = digitsOf(value, verb, base);
    if (digits !== undefined) return verb === 'X' ? digits.toUpperCase() : digits;
  }
  if ((verb === 'f' || verb === 'e') && (typeof value === 'number' || typeof value === 'bigint')) {
    const digits = Number(precision ?? 6);
    if (verb === 'f') return Number(value).toFixed(digits);
    // The exponent has at least two digits.
    return Number(value)
      .toExponential(digits)
      .replace(/([+-])(\d)$/, '$10$2');
  }
  throw new ExpressionError(`format cannot write this value with %${verb}`);
}

function digitsOf(value: unknown, verb: string, base: number): string | undefined {
  if (typeof value === 'bigint' || value instanceof UnsignedInt) return value.valueOf().toString(base);
  if (verb === 'd' && typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (verb === 'b' && typeof value === 'boolean') return value ? '1' : '0';
  if (base !== 16) return undefined;
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  return bytes instanceof Uint8Array
    ? [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
    : undefined;
}

/**
 * Formats a value for %s. Lists and maps contain their elements as text, and maps are sorted by key.
 */
function textIn(value: unknown, budget: { left: number }): string {
  const text = plainText(value) ?? collectionText(value, budget);
  budget.left -= text.length;
  if (budget.left < 0) throw tooLong();
  return text;
}

function plainText(value: unknown): string | undefined {
  if (value === null || typeof value !== 'object') return String(value);
  if (value instanceof UnsignedInt) return String(value.valueOf());
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (value instanceof Date) return timestampText(value);
  if (value instanceof Duration) return String(value);
  return undefined;
}

function collectionText(value: unknown, budget: { left: number }): string {
  if (Array.isArray(value)) return `[${value.map((item) => textIn(item, budget)).join(', ')}]`;
  if (!(value instanceof Map) && (value as object).constructor !== Object)
    throw new ExpressionError('format cannot write this value with %s');
  const entries = entriesOf(value as object).map(([key, item]) => [textIn(key, budget), textIn(item, budget)] as const);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${key}: ${item}`).join(', ')}}`;
}
