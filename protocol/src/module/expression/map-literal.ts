import type { ASTNode } from '@marcbachmann/cel-js';
import { UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import type { Evaluator } from './environment.ts';
import { ExpressionError } from './values.ts';

export const forbiddenKey = 'a map cannot have the key "__proto__": choose another key';

const keyTypes: ReadonlySet<string> = new Set(['string', 'bigint', 'number', 'boolean']);
const wrongKey = 'a key of a map must be a string, a number, or a boolean: convert it with string(…)';

/** Evaluates `{key: value}`. The library would omit the keys `constructor`, `prototype`, and `__proto__`. */
export function evaluateMap(evaluator: Evaluator, { args }: ASTNode & { op: 'map' }, context: unknown): object {
  const entries = args.map(([key, value]): [unknown, unknown] => {
    const name = evaluator.run(key, context);
    if (name === '__proto__') throw new ExpressionError(forbiddenKey);
    if (!keyTypes.has(typeof name) && !(name instanceof UnsignedInt)) throw new ExpressionError(wrongKey);
    return [name, evaluator.run(value, context)];
  });
  // In an object, `constructor` would hide the type from the library.
  return entries.some(([name]) => name === 'constructor')
    ? new Map(entries)
    : Object.fromEntries(entries as [string, unknown][]);
}
