/** The current time in the databases under test, in Unix seconds. */
export const testTime = 1_700_000_000;
