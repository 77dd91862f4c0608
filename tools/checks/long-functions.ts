/**
 * Exceptions for functions of more than 100 lines: `file#function`, and the reason. Do not add functions; split them
 * instead. Delete the entry of a function that has become short enough.
 */
export const longFunctions: Readonly<Record<string, string>> = {};
