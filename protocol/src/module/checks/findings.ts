import type { ReportExpression } from '../expression/expression-check.ts';
import type { Path } from '../source/tree.ts';

/** Receives a check's findings. `at` selects the key or the value at `path` as a finding's position. */
export interface Findings {
  fault(path: Path, message: string, at?: 'key' | 'value'): void;
  warning(path: Path, message: string): void;
  readonly faultInExpression: ReportExpression;
}
