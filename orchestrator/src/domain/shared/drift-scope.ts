/*
 * The state that drift checks compare a machine with: the last apply, or the modules of an audit assignment. Each scope
 * has its own drift state and events.
 */

export const appliedScope = '';
export const auditScope = (assignment: string): string => `audit:${assignment}`;

/** Returns a scope's audit assignment; null for the apply scope. */
export const assignmentOfScope = (scope: string): string | null =>
  scope === appliedScope ? null : scope.slice(auditScope('').length);
