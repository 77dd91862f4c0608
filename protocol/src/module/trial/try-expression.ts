import type { LookupValues } from '../composition/lookups.ts';
import type { AgentFacts } from '../conditions.ts';
import type { Json, ModuleDocument } from '../document.ts';
import { evaluateSole, evaluateText } from '../expression/evaluate.ts';
import { parseExpressions, soleExpression } from '../expression/expression.ts';
import { Meter } from '../expression/meter.ts';
import type { Evaluated } from '../expression/text-writer.ts';
import type { Scope } from '../expression/variables.ts';
import type { Layer } from '../parameters/layers.ts';
import { givenLayers, layeredParameters } from '../parameters.ts';
import { namesIn } from './explain.ts';

export type TriedExpression =
  | { readonly kind: 'value'; readonly value: Json }
  | { readonly kind: 'omitted' }
  /** Text with secrets, whose values are unknown; each secret is an expression in `text`. */
  | { readonly kind: 'secret'; readonly text: string }
  | { readonly kind: 'fault'; readonly message: string };

export interface ExpressionTrial {
  readonly agent: AgentFacts;
  /** The module that declares the parameters. If absent, all given values are parameters. */
  readonly module?: ModuleDocument | undefined;
  readonly parameters: Readonly<Record<string, Json>>;
  /** Layers of the module's parameters, in place of `parameters`. */
  readonly layers?: Readonly<Record<string, readonly Layer[]>> | undefined;
  /** Lookup values, by name. */
  readonly lookups: LookupValues;
  /** Element of `for_each`. */
  readonly each?: Json | undefined;
}

/**
 * Evaluates an expression as if it were in a field of a module.
 * @param source `param.port + 1`, or text with `${{ … }}`
 * @returns the result, and the names that the expression reads
 */
export function tryExpression(
  source: string,
  { agent, module, parameters, layers, lookups, each }: ExpressionTrial,
): { result: TriedExpression; from: string[] } {
  const { values, faults } =
    module === undefined
      ? { values: new Map(Object.entries(parameters)), faults: [] }
      : layeredParameters(module.parameters, layers ?? givenLayers(parameters), agent);
  const [fault] = faults;
  if (fault !== undefined) return { result: { kind: 'fault', message: fault.message }, from: [] };
  const text = source.includes('${{') ? source : `\${{ ${source} }}`;
  const scope: Scope = {
    agent,
    parameters: values,
    lookups: new Map(Object.entries(lookups) as [string, Json][]),
    each,
    index: each === undefined ? undefined : 0,
    meter: new Meter(),
  };
  const sole = soleExpression(parseExpressions(text).parts);
  const usesSecrets = sole !== undefined && (sole.kind === 'cel' ? sole.compiled.usesSecrets : sole.root === 'secrets');
  const isText = sole === undefined || usesSecrets || (sole.kind === 'expression' && sole.separator !== null);
  const evaluated = isText ? evaluateText(text, scope) : evaluateSole(text, 'text', scope);
  return { result: shownResult(evaluated), from: namesIn(text) };
}

function shownResult(evaluated: Evaluated): TriedExpression {
  if (evaluated.kind !== 'deferred') return evaluated;
  const parts = evaluated.parts.map((part) => ('text' in part ? part.text : `\${{ secrets.${part.secret} }}`));
  return { kind: 'secret', text: parts.join('') };
}
