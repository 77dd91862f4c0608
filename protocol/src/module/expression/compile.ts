import type { ASTNode } from '@marcbachmann/cel-js';
import { quoted, suggestion } from '../nearest.ts';
import {
  type CelError,
  environment,
  refuseSecrets,
  replacedCalls,
  replacedFunctions,
  variables,
} from './environment.ts';
import { beyondInt, largestInt, literalBytes, requireRange } from './functions/corrections.ts';
import { expressionFunctions } from './functions/index.ts';
import { standardFunctions } from './functions/standard.ts';
import { evaluateMap, forbiddenKey } from './map-literal.ts';
import { unexpected, writtenHere } from './other-languages.ts';
import { readOperands } from './secret-flow.ts';
import { secretAsArgument } from './values.ts';

/** A compiled expression, with the names that it refers to. */
export interface Compiled {
  readonly evaluate: (context: object) => unknown;
  readonly variables: ReadonlySet<string>;
  /** Parameters that the expression refers to by a constant name. */
  readonly parameters: ReadonlySet<string>;
  /** Facts such as `attr.rack` that the expression refers to by a constant name. */
  readonly references: ReadonlySet<string>;
  readonly usesSecrets: boolean;
  /** Names that only a loop around the expression can define. */
  readonly ofLoops: ReadonlySet<string>;
  /** Names of CEL types, such as `map`, that the expression uses as values. */
  readonly types: ReadonlySet<string>;
  /** Whether the expression reads parameters with computed names, or all parameters. */
  readonly computesParameters: boolean;
  /** Whether the expression uses a secret whose name is neither constant nor a parameter. */
  readonly computesSecrets: boolean;
  /** Names of the parameters whose values are secret names. */
  readonly secretParameters: ReadonlySet<string>;
  /** CEL type, such as `list<string>`; `dyn` if it depends on values. */
  readonly type: string;
}

const cache = new Map<string, Compiled | { readonly message: string }>();
const maximumCached = 5000;

/**
 * Compiles CEL, and caches the result. A module revision has few expressions, which all agents share.
 * @returns the expression, or a message for its author
 */
export function compile(source: string): Compiled | { readonly message: string } {
  const known = cache.get(source);
  if (known !== undefined) return known;
  const compiled = compiledSource(source);
  if (cache.size >= maximumCached) cache.clear();
  cache.set(source, compiled);
  return compiled;
}

function compiledSource(source: string): Compiled | { readonly message: string } {
  if (source === '') return { message: 'the expression is empty; write $${{ for a plain ${{' };
  try {
    const evaluate = environment.parse(source);
    const names = new NamesOf(evaluate.ast);
    if (names.fault !== undefined) return { message: names.fault };
    // Type checking and evaluation store different types in the nodes, so each uses its own nodes.
    const copy = environment.parse(source);
    new NamesOf(copy.ast);
    const checked = copy.check();
    if (!checked.valid) return { message: described(checked.error as CelError) };
    const usesSecrets = names.variables.has('secrets') || names.calls.has('secret');
    // A loop variable can be a secret.
    if (usesSecrets || names.ofLoops.size > 0) refuseSecrets(names.read);
    return {
      evaluate: (context) => {
        const value: unknown = evaluate(context);
        // The counting evaluator of `environment.ts` has checked the operands only.
        requireRange(value);
        return value;
      },
      variables: names.variables,
      parameters: names.parameters,
      references: names.references,
      usesSecrets,
      ofLoops: names.ofLoops,
      types: names.types,
      computesSecrets: names.computesSecrets,
      secretParameters: names.secretParameters,
      computesParameters: names.computesParameters,
      type: checked.type ?? 'dyn',
    };
  } catch (error) {
    return { message: described(error as CelError) };
  }
}

/** Names of all functions and methods. */
const functionNames: readonly string[] = [
  ...new Set([...standardFunctions, ...expressionFunctions].map(({ name }) => name)),
];
const typeNames: readonly string[] =
  'bool bytes double duration int list map null_type string timestamp type uint'.split(' ');
const known = new Set<string>([...variables, 'google', 'cel', 'omit']);

/** Collects the names in an expression, and redirects calls that `environment.ts` replaces. */
class NamesOf {
  readonly variables = new Set<string>();
  readonly parameters = new Set<string>();
  readonly references = new Set<string>();
  readonly calls = new Set<string>();
  readonly ofLoops = new Set<string>();
  readonly types = new Set<string>();
  readonly secretParameters = new Set<string>();
  /** Operands that cannot contain secrets. */
  readonly read: ASTNode[] = [];
  fault: string | undefined;
  /** Uses of `secrets`, except for those whose name is constant or a parameter. */
  #computed = 0;
  /** Uses of `param`, except for those with a constant name. */
  #computedParameters = 0;

  constructor(root: ASTNode) {
    this.#visit(root, new Set());
  }

  get computesSecrets(): boolean {
    return this.#computed > 0;
  }

  get computesParameters(): boolean {
    return this.#computedParameters > 0;
  }

  #visit(node: ASTNode, bound: ReadonlySet<string>): void {
    if (node.op === 'value') {
      if (node.args instanceof Uint8Array)
        (node as { args: unknown }).args = literalBytes(node.input.slice(node.start, node.end), node.args);
      if (typeof node.args === 'bigint' && node.args > largestInt) this.fault ??= beyondInt(node.args);
      return;
    }
    // The smallest int is written as `-` and a number that is too large by one.
    if (node.op === '-_' && node.args.op === 'value' && node.args.args === largestInt + 1n) return;
    this.read.push(...readOperands(node));
    if (node.op === 'id') this.#identifier(node.args, bound);
    else if (node.op === 'rcall') this.#method(node.args, bound);
    else if (node.op === 'call') {
      const [name, [argument]] = node.args;
      if (name === 'secret' && argument !== undefined && !this.#isFixed(argument, bound)) this.#computed += 1;
      this.#function(node.args, replacedCalls);
    }
    // The library treats values of different types as unequal instead of reporting an error.
    if (node.op === '==' || node.op === '!=' || node.op === 'in')
      if (node.args.some((operand) => isSecret(operand, bound))) this.fault ??= secretAsArgument;
    if (node.op === 'map') {
      if (node.args.some(([key]) => key.op === 'value' && key.args === '__proto__')) this.fault ??= forbiddenKey;
      // The library's types do not declare this method.
      (node as unknown as { setMeta(name: string, value: unknown): void }).setMeta('evaluate', evaluateMap);
    }
    this.#selection(node, bound);
    for (const child of childrenOf(node)) this.#visit(child, bound);
  }

  #selection(node: ASTNode, bound: ReadonlySet<string>): void {
    if (node.op !== '.' && node.op !== '[]') return;
    const [owner, key] = node.args;
    if (owner.op !== 'id' || bound.has(owner.args)) return;
    const name = typeof key === 'string' ? key : key.op === 'value' ? key.args : undefined;
    if (owner.args === 'secrets' && (typeof key === 'string' || this.#isFixed(key, bound))) this.#computed -= 1;
    if (typeof name !== 'string') return;
    if ((variables as readonly string[]).includes(owner.args)) this.references.add(`${owner.args}.${name}`);
    if (owner.args === 'param') {
      this.parameters.add(name);
      this.#computedParameters -= 1;
    }
    if (owner.args === 'agent' && name !== 'name' && name !== 'node_id')
      this.fault ??= `${quoted(`agent.${name}`)} is not of the form agent.name or agent.node_id`;
  }

  /** Reports whether the name of a secret is constant or a parameter. */
  #isFixed(node: ASTNode, bound: ReadonlySet<string>): boolean {
    if (node.op === 'value') return true;
    if ((node.op !== '.' && node.op !== '[]') || bound.has('param')) return false;
    const [owner, key] = node.args;
    if (owner.op !== 'id' || owner.args !== 'param') return false;
    const name = typeof key === 'string' ? key : key.op === 'value' ? key.args : undefined;
    if (typeof name === 'string') this.secretParameters.add(name);
    return typeof name === 'string';
  }

  #identifier(name: string, bound: ReadonlySet<string>): void {
    if (bound.has(name)) return;
    if (name === 'secrets') this.#computed += 1;
    if (name === 'param') this.#computedParameters += 1;
    if ((variables as readonly string[]).includes(name)) this.variables.add(name);
    else if (typeNames.includes(name)) this.types.add(name);
    else if (!known.has(name)) this.ofLoops.add(name);
  }

  #function(args: [string, ...unknown[]], replaced: Readonly<Record<string, string>>): void {
    const [name] = args;
    this.calls.add(name);
    if (!functionNames.includes(name)) {
      this.fault ??= `unknown function ${quoted(name)}${writtenHere(name) ?? suggestion(name, functionNames)}`;
      return;
    }
    // The library declares its nodes as read-only, but they are mutable.
    if (Object.hasOwn(replaced, name)) args[0] = replaced[name] as string;
  }

  #method(args: [string, ASTNode, ASTNode[]], bound: ReadonlySet<string>): void {
    const [name, owner, given] = args;
    this.#function(args, replacedFunctions);
    const [first, ...rest] = given;
    const isMacro = macros.has(name) && first?.op === 'id';
    const inner = isMacro ? new Set([...bound, first.args]) : bound;
    this.#visit(owner, bound);
    for (const node of isMacro ? rest : given) this.#visit(node, inner);
  }
}

/**
 * Returns the error for a name that neither a variable nor a loop defines.
 * @param names the variables of the enclosing loops
 */
export const unknownName = (name: string, names: Iterable<string> = []): string =>
  name === 'item'
    ? 'unknown name "item": write each, for the element of for_each'
    : `unknown name ${quoted(name)}${suggestion(name, [...variables, ...names])}; write $\${{ for a plain \${{`;

/** Macros whose first argument names a variable. */
const macros = new Set(['map', 'filter', 'all', 'exists', 'exists_one', 'bind']);

/** Reports whether a node yields a secret. */
function isSecret(node: ASTNode, bound: ReadonlySet<string>): boolean {
  if (node.op === '?:') return node.args.slice(1).some((branch) => isSecret(branch, bound));
  if (node.op === '.' || node.op === '[]')
    return node.args[0].op === 'id' && node.args[0].args === 'secrets' && !bound.has('secrets');
  if (node.op !== 'call') return false;
  const [name, [first]] = node.args;
  return name === 'secret' || (name === 'default' && first !== undefined && isSecret(first, bound));
}

/** Returns the operands of a node. Omits the operands of methods, which have different variables. */
function childrenOf(node: ASTNode): readonly ASTNode[] {
  if (node.op === 'rcall') return [];
  if (node.op === 'call') return node.args[1];
  if (node.op === 'map') return node.args.flat();
  if (node.op === '.') return [node.args[0]];
  return (Array.isArray(node.args) ? node.args : [node.args]).filter((item) => typeof item === 'object') as ASTNode[];
}

const replacementNames = new RegExp(
  `\\b(${[...Object.keys(replacedFunctions), ...Object.keys(replacedCalls)].join('|')})_\\b`,
  'g',
);

/** Replaces an error message from the library with a message for module authors. */
export function described(error: CelError): string {
  const summary = (error.summary ?? error.message.split('\n', 1)[0] ?? '').replace(replacementNames, '$1');
  if (/\bSecrets?\b/.test(summary)) return secretAsArgument;
  const limit = /^Exceeded (\w+) \((\d+)\)/.exec(summary);
  if (limit !== null) return `the expression is too large or too deep for CEL (${limit[1]} is ${limit[2]}): split it`;
  const overload = /^found no matching overload for '(.+)'$/.exec(summary);
  if (overload !== null) return `no function takes these types: ${overload[1]}${formOf(overload[1] ?? '')}`;
  const operator = /^no such overload: (.+)$/.exec(summary);
  if (operator !== null)
    return `no operator takes these types: ${operator[1]}; convert one of them, such as with string(…) or int(…)`;
  const unknown = /^Unknown variable: (\w+)$/.exec(summary);
  if (unknown !== null) return unknownName(unknown[1] as string);
  if (/^Logical operator requires bool/.test(summary))
    return 'an operand of || or && is not true or false: use a comparison; for a missing value, write | default("…")';
  if (/^(Unexpected|Expected)/.test(summary)) return unexpected(error);
  return `the expression is not valid CEL: ${summary.slice(0, 300)}`;
}

/** CEL methods, which cannot be called with a pipe. */
const methodNames: readonly string[] = [
  'upperAscii',
  'lowerAscii',
  'trim',
  'split',
  'startsWith',
  'endsWith',
  'contains',
];

/** Completes a message with a function's signature, which begins with its name or with a type and its name. */
function formOf(call: string): string {
  const name = /([A-Za-z_]\w*)\(/.exec(call)?.[1];
  if (name === 'default') return '; write x | default("…")';
  const found = expressionFunctions.find((each) => each.name === name);
  if (found === undefined && methodNames.includes(name ?? '') && !call.includes(`.${name}(`))
    return `; write x.${name}(…)`;
  return found === undefined ? '' : `; write ${found.form}`;
}
