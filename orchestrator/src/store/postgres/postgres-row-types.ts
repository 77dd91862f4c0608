import { types } from 'pg';

/**
 * Converts 64-bit integers and sums to numbers, as SQLite does.
 * @throws RangeError if the value is too large to be represented exactly, which is a bug
 */
function exactNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw new RangeError(`${text} is too large for a number`);
  return value;
}

const numberTypes = new Set<number>([types.builtins.INT8, types.builtins.NUMERIC]);
/** The driver's parsers for column values. */
export const rowTypes = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    numberTypes.has(oid) ? exactNumber : types.getTypeParser(oid, format as 'text'),
};
