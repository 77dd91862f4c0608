/** The time that databases under test believe it is, in Unix seconds. */
export const testTime = 1_700_000_000;
