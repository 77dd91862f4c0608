/**
 * Reports whether a value is a time in Unix seconds that `Date` can represent (ECMA-262, section 21.4.1.1). Check times
 * from the network with it before you format them, because `toISOString` throws for all other values.
 */
export const isUnixTime = (at: unknown): at is number =>
  typeof at === 'number' && Number.isFinite(at) && Math.abs(at) <= 8.64e12;
