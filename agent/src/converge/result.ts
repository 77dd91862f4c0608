import type { ResourceResult } from '@muster/protocol';
import type { Decision } from './plan/decision.ts';
import type { Step } from './plan/steps.ts';
import { redactResult, sensitiveFields } from './report/redact.ts';
import { withinCaps } from './report/report-size-limit.ts';

const maxError = 2000;

/**
 * Builds the result of a step.
 * @param whenActing status if the step has an action: `would_change` in a plan, `changed` in an apply
 */
export function resultOf(
  step: Step,
  decision: Decision,
  whenActing: 'would_change' | 'changed',
  ms: number,
): ResourceResult {
  if (decision.verdict === 'skip') return blank(step, 'skipped', decision.message, ms);
  if (decision.verdict === 'fail') return blank(step, 'failed', decision.message, ms);
  const { difference, triggeredBy, corrective } = decision;
  const acts = decision.verdict === 'act';
  const result = redactResult(
    {
      ...blank(step, acts ? whenActing : 'unchanged', difference.message ?? null, ms),
      action: difference.action,
      changes: difference.changes,
      diff: difference.diff,
      triggered_by: triggeredBy,
      corrective,
    },
    step.resource,
    sensitiveFields(step.resource, step.record),
  );
  return withinCaps(result);
}

/** Builds the result of a failed step from the attempted change and the reason for the failure. */
export function failedResult(step: Step, decision: Decision, message: string, ms: number): ResourceResult {
  return withinCaps({ ...resultOf(step, decision, 'changed', ms), status: 'failed', message });
}

/** Replaces the message of a step that has an action. */
export function noted(decision: Decision, message: string): Decision {
  if (decision.verdict !== 'act') return decision;
  return { ...decision, difference: { ...decision.difference, message } };
}

/**
 * Returns the first line of a message. Other lines, such as those from a service's journal, appear only in the result
 * of the resource.
 */
const firstLine = (message: string | null): string | undefined =>
  message?.split('\n')[0]?.replace(/[;:] last in the journal:$|:$/, '');

/** Summarizes the failures of an operation in one line. */
export function failureSummary(results: readonly ResourceResult[]): string {
  const failed = results.filter(({ status }) => status === 'failed' || status === 'unknown');
  const first = failed
    .slice(0, 3)
    .map(({ id, identity, message }) => `${id ?? identity}: ${firstLine(message) ?? 'no reason given'}`)
    .join('; ');
  const rest = failed.length > 3 ? `; and ${failed.length - 3} more` : '';
  return `${failed.length} of ${results.length} resources failed. ${first}${rest}`.slice(0, maxError);
}

function blank(step: Step, status: ResourceResult['status'], message: string | null, ms: number): ResourceResult {
  const { module, id, type, identity } = step.resource;
  return withinCaps({
    module,
    id,
    type,
    identity,
    action: 'none',
    status,
    changes: [],
    diff: null,
    triggered_by: [],
    corrective: false,
    message,
    duration_ms: Math.max(0, Math.round(ms * 100) / 100),
    sensitive: sensitiveFields(step.resource, step.record).length > 0,
  });
}
