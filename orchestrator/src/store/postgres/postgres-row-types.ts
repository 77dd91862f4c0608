import { types } from 'pg';

/** 64-bit integers and sums as numbers, as on SQLite. A number that is not exact is a bug. */
function exactNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw new RangeError(`${text} is too large for a number`);
  return value;
}

const numberTypes = new Set<number>([types.builtins.INT8, types.builtins.NUMERIC]);
/** Parsers of the driver for column values. */
export const rowTypes = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    numberTypes.has(oid) ? exactNumber : types.getTypeParser(oid, format as 'text'),
};
