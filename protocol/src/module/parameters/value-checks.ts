import type { Json, ModuleDocument, ValueCheck } from '../document.ts';
import { holds } from '../expression/evaluate.ts';
import { parsePlain } from '../expression/expression.ts';
import { Meter } from '../expression/meter.ts';
import { reasonOrValue } from '../expression/values.ts';
import type { Scope } from '../expression/variables.ts';
import { givenFaults } from '../parameters.ts';

/** Conditions that the values of a module's parameters must satisfy: `require` in the module. */

/** Returns the errors for conditions that are false, with their indices. */
export const failedChecks = (
  checks: readonly ValueCheck[],
  scope: Scope,
): { readonly index: number; readonly message: string }[] =>
  checks.flatMap(({ that, message }, index) => {
    const parsed = parsePlain(that);
    const found = 'message' in parsed ? parsed.message : reasonOrValue(() => holds(parsed, scope));
    if (found === true) return [];
    return [{ index, message: found === false ? message : `the condition ${that} cannot be evaluated: ${found}` }];
  });

const noAgent = { name: null, node_id: '', attributes: {}, tags: {} };

/**
 * Returns the errors in a module's parameter values before it is known which other values an agent gets. A
 * condition is evaluated if it reads only given values and no other value is merged with them.
 * @param given values by name; null is treated as absent
 * @returns the errors, with their paths in the values
 */
export function moduleValueFaults(
  { parameters, require }: Pick<ModuleDocument, 'parameters' | 'require'>,
  given: Readonly<Record<string, Json>>,
): { path: readonly (string | number)[]; message: string }[] {
  const faults = givenFaults(parameters, given);
  if (faults.length > 0 || require.length === 0) return faults;
  const values = new Map(
    Object.entries(given).filter(([name, value]) => value !== null && parameters[name]?.merge === 'replace'),
  );
  const decided = require.filter(({ that }) => {
    const parsed = parsePlain(that);
    if ('message' in parsed) return false;
    const { variables, parameters: names, computesParameters } = parsed.compiled;
    return (
      [...variables].every((name) => name === 'param') &&
      !computesParameters &&
      [...names].every((name) => values.has(name))
    );
  });
  const scope = { agent: noAgent, parameters: values, each: undefined, index: undefined, meter: new Meter() };
  return failedChecks(decided, scope).map(({ message }) => ({ path: [], message }));
}
