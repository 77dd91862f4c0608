/**
 * Existing functions of more than 100 lines: `file#function` and the reason. Do not add functions; divide them. Delete the
 * line of a function that is short enough.
 */
export const longFunctions: Readonly<Record<string, string>> = {};
