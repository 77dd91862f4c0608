import type { Compiled } from './compile.ts';
import type { Control } from './control.ts';

/** The source of a value. `each` is the current element of `for_each`. */
export type ExpressionRoot = 'secrets' | 'agent' | 'attr' | 'tag' | 'param' | 'each';

export interface Expression {
  readonly kind: 'expression';
  readonly root: ExpressionRoot;
  /** The text after the first dot; empty for `each` itself. */
  readonly key: string;
  /** Value of `| default("…")`, which replaces a missing value. */
  readonly fallback: string | null;
  /** Value of `| join("…")`, which separates list elements. */
  readonly separator: string | null;
  /** Offset of the opening `${{` in the text, in UTF-16 units. */
  readonly offset: number;
}

export interface TextPart {
  readonly kind: 'text';
  readonly text: string;
}

/** An expression that needs CEL. A name with only `default` and `join` is an {@link Expression}, which is faster. */
export interface CelExpression {
  readonly kind: 'cel';
  /** The expression with pipes written as calls. */
  readonly source: string;
  readonly compiled: Compiled;
  /** Offset of the opening `${{` in the text, in UTF-16 units. */
  readonly offset: number;
}

/** A control word, such as `${{ for x in param.list }}`. */
export interface ControlPart {
  readonly kind: 'control';
  readonly control: Control;
  readonly offset: number;
}

export type Part = TextPart | Expression | CelExpression | ControlPart;

export interface ExpressionFault {
  readonly offset: number;
  readonly message: string;
}
