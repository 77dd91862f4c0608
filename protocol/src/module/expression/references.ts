import { isMapping } from '../../mapping.ts';
import { own } from '../agent-facts.ts';
import type { Json } from '../document.ts';
import { written } from './expression.ts';
import type { Expression } from './parts.ts';
import type { Scope } from './variables.ts';

/** @returns undefined if the value does not exist and there is no default */
export function lookUp(expression: Expression, scope: Scope): Json | undefined {
  const value = valueOfReference(expression, scope);
  return value ?? expression.fallback ?? undefined;
}

function valueOfReference({ root, key }: Expression, { agent, parameters, each }: Scope): Json | undefined {
  switch (root) {
    case 'agent':
      return key === 'name' ? agent.name : agent.node_id;
    case 'attr':
      return own(agent.attributes, key);
    case 'tag':
      return own(agent.tags, key);
    case 'param':
      return parameters.get(key);
    case 'each': {
      let value = each;
      for (const segment of key === '' ? [] : key.split('.')) {
        value = isMapping(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
      }
      return value;
    }
    case 'secrets':
      return undefined;
  }
}

export const otherwise = 'or give the expression | default("…")';
export const orOmit = ', or | omit to leave the field out';

/** Returns the message for an expression that reads a parameter without a value. */
export const unsetParameter = (name: string): string =>
  `the parameter "${name}" has neither value nor default: set it in the assignment, ${otherwise}`;

export function missing(expression: Pick<Expression, 'root' | 'key'>): string {
  const name = written(expression);
  switch (expression.root) {
    case 'agent':
      return `${name} has no value yet: approve the agent under a name, ${otherwise}`;
    case 'attr':
      return `the agent reports no attribute "${expression.key}": fix the name, ${otherwise}`;
    case 'tag':
      return `the agent has no tag "${expression.key}": set it, ${otherwise}`;
    case 'param':
      return unsetParameter(expression.key);
    default:
      return `${name} has no value: fix the list, ${otherwise}${orOmit}`;
  }
}
