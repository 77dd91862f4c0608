/*
 * The scope of a drift state says what the machine is compared with: the last apply, or what an audit assignment declares.
 * Each scope has its own state and its own events.
 */

export const appliedScope = '';
export const auditScope = (assignment: string): string => `audit:${assignment}`;

/** The audit assignment of a scope; null for the scope of applies. */
export const assignmentOfScope = (scope: string): string | null =>
  scope === appliedScope ? null : scope.slice(auditScope('').length);
