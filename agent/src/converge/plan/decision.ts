import type { Difference } from '../../resources/provider/provider.ts';

export type Observation = { seen: unknown } | { failure: string };

export type Decision =
  | { verdict: 'skip'; message: string }
  /** `awaits`: the missing prerequisites, which earlier steps may provide. */
  | { verdict: 'fail'; message: string; awaits?: NonNullable<Difference['awaits']> }
  | {
      verdict: 'none' | 'act';
      difference: Difference;
      /** IDs of the changed resources that trigger the step. */
      triggeredBy: string[];
      corrective: boolean;
    };

/** The decision for a step that needs a change, or needed none. */
export type Acted = Extract<Decision, { verdict: 'none' | 'act' }>;

/**
 * Result of `only_if`: the condition is true, with a note if the plan cannot be certain; or the step is skipped or
 * fails.
 */
export type Condition = { note: string | null } | Extract<Decision, { verdict: 'skip' | 'fail' }>;
