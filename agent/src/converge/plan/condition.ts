import { HostFailure } from '../../host/failure.ts';
import { pathExists } from '../../host/files/path-exists.ts';
import type { Condition, Picture, Step } from './plan.ts';

export const satisfied: Condition = { note: null };

/**
 * Checks whether the condition of a step holds on the machine or, in a plan, after the earlier steps. Changes nothing.
 */
export function conditionOf(step: Step, picture: Picture): Condition {
  const path = step.kind === 'apply' ? step.resource.only_if?.exists : undefined;
  if (path === undefined) return satisfied;
  try {
    const exists = picture.purpose === 'plan' ? picture.willExist(path, pathExists(path)) : pathExists(path);
    if (exists) return satisfied;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { verdict: 'fail', message: `\`only_if\`: ${error.message}` };
  }
  // A plan includes a step whose path an earlier step may create, because an apply must not do more than its plan.
  const makers = picture.purpose === 'plan' ? picture.mayMakePaths(step).map((label) => `\`${label}\``) : [];
  if (makers.length === 0) return { verdict: 'skip', message: `skipped, because ${path} does not exist (\`only_if\`)` };
  const more = makers.length > 3 ? ` or ${makers.length - 3} more` : '';
  const note = `${path} does not exist now: skipped unless it is created by ${makers.slice(0, 3).join(', ')}${more} (\`only_if\`)`;
  return { note };
}
