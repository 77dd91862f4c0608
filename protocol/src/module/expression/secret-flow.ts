import type { ASTNode } from '@marcbachmann/cel-js';

/**
 * The functions, methods, and macros that return parts of their arguments unchanged. They accept lists and maps that
 * contain secrets. All other functions, including new ones, refuse them, because their result could depend on a secret.
 */
export const passingFunctions: ReadonlySet<string> = new Set([
  'default',
  'omit',
  'dyn',
  'flatten',
  'values',
  'entries',
  'merge',
  'map',
  'filter',
  'bind',
]);

/** The operators that return parts of their operands unchanged. `+` adds lists; for other types it refuses secrets. */
const passingOperators: ReadonlySet<string> = new Set(['value', 'id', 'list', '.', '+']);

/**
 * Returns the operands on which the result of a node depends, other than by containing parts of them. Such an operand
 * must not contain a secret, so that no secret determines a condition, loop, name, key, or size.
 */
export function readOperands(node: ASTNode): readonly ASTNode[] {
  if (node.op === '?:') return [node.args[0]];
  if (node.op === '[]') return [node.args[1]];
  if (node.op === 'map') return node.args.map(([key]) => key);
  if (node.op === 'rcall') {
    const [name, owner, given] = node.args;
    // The condition of `filter(x, condition)` and of `map(x, condition, value)`.
    if (name === 'filter' || name === 'map') return given.slice(1, name === 'filter' ? 2 : -1);
    return passingFunctions.has(name) ? [] : [owner, ...given];
  }
  if (node.op === 'call') {
    const [name, given] = node.args;
    if (name === 'has') return given.map(baseOf);
    return passingFunctions.has(name) ? [] : given;
  }
  if (passingOperators.has(node.op)) return [];
  return (Array.isArray(node.args) ? node.args : [node.args]) as ASTNode[];
}

/** Returns the value from which `has(value.a.b)` reads keys. */
function baseOf(node: ASTNode): ASTNode {
  return node.op === '.' ? baseOf(node.args[0]) : node;
}
