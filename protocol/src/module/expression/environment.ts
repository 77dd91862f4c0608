import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import type { UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { bytesOperators, correctedMethods, requireRange } from './functions/corrections.ts';
import { expressionFunctions } from './functions/index.ts';
import { firstIndex, lastIndex, splitText } from './functions/search.ts';
import { Version, versionOperators } from './functions/versions.ts';
import { Meter, stepsOf } from './meter.ts';
import {
  containsSecret,
  ExpressionError,
  Omit,
  omitted,
  Secret,
  SecretNames,
  secretAsArgument,
  secretOf,
  timestampText,
} from './values.ts';

/** The variables of expressions, in the order in which messages list them. */
export const variables = ['agent', 'attr', 'tag', 'param', 'each', 'index', 'lookup', 'secrets'] as const;

/** Limits of the parser. The depth and node limits bound the time and stack usage of parsing and type checking. */
const limits = { maxAstNodes: 2000, maxDepth: 48, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 };

/** Members of the library's evaluator that its types do not declare. The tests of `default` and secrets rely on them. */
export interface Evaluator {
  run(node: ASTNode, context: unknown): unknown;
}
interface TypeChecker {
  check(node: ASTNode, context: unknown): unknown;
  getType(name: string): unknown;
}

/** The library's error: `summary` is its message without the source. */
export interface CelError extends Error {
  readonly summary?: string;
  readonly code?: string;
  readonly node?: ASTNode;
  readonly range?: { readonly start: number };
}

let meter = new Meter();

const refusing = new WeakSet<ASTNode>();

/** Makes the evaluation of these nodes fail if they yield a value that contains a secret. */
export function refuseSecrets(nodes: readonly ASTNode[]): void {
  for (const node of nodes) refusing.add(node);
}

/** Evaluates an expression and counts its cost. Evaluations cannot be nested. */
export function metered<T>(counting: Meter, evaluate: () => T): T {
  meter = counting;
  meter.begin();
  const value = evaluate();
  // Operators such as `||` ignore an error on one side, so this error may have been ignored.
  if (meter.fault !== undefined) throw new ExpressionError(meter.fault);
  return value;
}

const missingCodes = new Set(['no_such_key', 'index_out_of_bounds']);

/** Reports whether a missing value caused the error. */
export const isMissing = ({ code }: CelError): boolean => missingCodes.has(code ?? '');

/** Expands `default(value, other)`, which evaluates `other` only if the value is missing. */
const withDefault = ({ args }: { args: readonly ASTNode[] }) => ({
  async: false,
  typeCheck: (checker: TypeChecker, _: unknown, context: unknown) => {
    for (const node of args) checker.check(node, context);
    return checker.getType('dyn');
  },
  evaluate: (evaluator: Evaluator, _: unknown, context: unknown): unknown => {
    const [value, other] = args as [ASTNode, ASTNode | undefined];
    const instead = (): unknown => (other === undefined ? omitted : evaluator.run(other, context));
    try {
      const found = evaluator.run(value, context);
      if (found instanceof Secret && other !== undefined) {
        const fallback = instead();
        if (typeof fallback === 'string') return new Secret(Secret.nameOf(found), fallback);
        throw new ExpressionError('the default of a secret must be text');
      }
      return found ?? instead();
    } catch (error) {
      if (!isMissing(error as CelError)) throw error;
      return instead();
    }
  },
});

/** Library functions that take much more than linear time or are wrong, with the names of their replacements. */
export const replacedFunctions: Readonly<Record<string, string>> = {
  matches: 'matches_',
  join: 'join_',
  contains: 'contains_',
  indexOf: 'indexOf_',
  lastIndexOf: 'lastIndexOf_',
  split: 'split_',
  lowerAscii: 'lowerAscii_',
  upperAscii: 'upperAscii_',
  trim: 'trim_',
  json: 'json_',
};
export const replacedCalls: Readonly<Record<string, string>> = { duration: 'duration_' };

/** CEL conversions that the library lacks. */
const conversions: readonly (readonly [signature: string, convert: (value: never) => unknown])[] = [
  ['int(uint): int', (value: UnsignedInt) => asInt(value.valueOf())],
  ['int(google.protobuf.Timestamp): int', (time: Date) => BigInt(Math.floor(time.getTime() / 1000))],
  ['string(google.protobuf.Timestamp): string', timestampText],
  ['string(google.protobuf.Duration): string', String],
  ['string(Version): string', Version.textOf],
  ['timestamp(google.protobuf.Timestamp): google.protobuf.Timestamp', (time: Date) => time],
  ['duration_(google.protobuf.Duration): google.protobuf.Duration', (duration: object) => duration],
];

/** Checks the start index of a search, as the library does. */
function startOf(text: string, from: bigint): number {
  const start = Number(from);
  if (start >= 0 && start < text.length) return start;
  throw new ExpressionError(`the index ${from} is outside the text, which has ${text.length} characters`);
}

/** Library methods that search a string. */
const searches: readonly (readonly [signature: string, search: (...values: never[]) => unknown])[] = [
  ['string.contains_(string): bool', (text: string, part: string) => firstIndex(meter, text, part) !== -1],
  ['string.indexOf_(string): int', (text: string, part: string) => BigInt(firstIndex(meter, text, part))],
  [
    'string.indexOf_(string, int): int',
    (text: string, part: string, from: bigint) =>
      part === '' ? from : BigInt(firstIndex(meter, text, part, startOf(text, from))),
  ],
  ['string.lastIndexOf_(string): int', (text: string, part: string) => BigInt(lastIndex(meter, text, part))],
  [
    'string.lastIndexOf_(string, int): int',
    (text: string, part: string, from: bigint) =>
      part === '' ? from : BigInt(lastIndex(meter, text, part, startOf(text, from))),
  ],
  ['string.split_(string): list<string>', (text: string, separator: string) => splitText(meter, text, separator)],
  [
    'string.split_(string, int): list<string>',
    (text: string, separator: string, limit: bigint) => {
      if (limit === 0n) return [];
      const parts = splitText(meter, text, separator);
      if (limit < 0n || BigInt(parts.length) <= limit) return parts;
      const first = Number(limit) - 1;
      return [...parts.slice(0, first), parts.slice(first).join(separator)];
    },
  ],
];

function asInt(value: bigint): bigint {
  if (value === BigInt.asIntN(64, value)) return value;
  throw new ExpressionError(`the number ${value} is beyond the largest int`);
}

function environmentOf(): Environment {
  // Loop variables can have any name. `compile.ts` determines the names that an expression uses.
  const environment = new Environment({ limits, homogeneousAggregateLiterals: false, unlistedVariablesAreDyn: true });
  environment.registerType('Secret', Secret).registerType('Secrets', SecretNames).registerType('Omitted', Omit);
  environment.registerType('Version', Version);
  for (const name of variables) environment.registerVariable(name, 'dyn');
  // Declared as a variable, because a constant would take the type of its value.
  environment.registerVariable('omit', 'dyn');
  environment.registerFunction('default(ast, ast): dyn', withDefault);
  environment.registerFunction('omit(ast): dyn', withDefault);
  environment.registerFunction('secret(string): Secret', secretOf, { async: false });
  for (const { signatures, call } of expressionFunctions) {
    if (call === undefined) continue;
    const handler = (...values: unknown[]): unknown => {
      meter.spend(stepsOfFunction);
      return call(meter, ...(values as never[]));
    };
    for (const signature of signatures) environment.registerFunction(signature, handler, { async: false });
  }
  const plain = new Environment().registerVariable('text', 'string');
  const duration = plain.parse('duration(text)');
  environment.registerFunction(
    'duration_(string): google.protobuf.Duration',
    (text: string): unknown => {
      // The library's pattern for durations takes cubic time.
      if (text.length > 40) throw new ExpressionError('a duration has at most 40 characters');
      return duration({ text });
    },
    { async: false },
  );
  for (const [signature, convert] of conversions) environment.registerFunction(signature, convert, { async: false });
  for (const [signature, search] of searches)
    environment.registerFunction(signature, search as (...values: unknown[]) => unknown, { async: false });
  for (const [signature, call] of correctedMethods) {
    const handler = (...values: unknown[]): unknown => call(meter, ...(values as never[]));
    environment.registerFunction(signature, handler, { async: false });
  }
  for (const [signature, compare] of bytesOperators) environment.registerOperator(signature, compare);
  for (const [operator, holds] of versionOperators) {
    const compare = (one: Version | string, other: Version | string): boolean =>
      holds(Version.compare(meter, one, other));
    environment.registerOperator(`Version ${operator} Version`, compare);
    environment.registerOperator(`Version ${operator} string`, compare);
    // For `==`, the library adds the overload with swapped operands.
    if (operator !== '==') environment.registerOperator(`string ${operator} Version`, compare);
  }
  countSteps(environment);
  return environment;
}

/** Number of steps to charge for a call of an expression function. Functions that take more than 0.4 µs charge the rest. */
const stepsOfFunction = 4;

/**
 * Returns the number of steps to charge for a method. Timestamp methods are slow, because they may load a time zone.
 */
const stepsOfMethod = (name: unknown): number => (typeof name === 'string' && name.startsWith('get') ? 1000 : 0);

/** Makes the evaluator count each operation and the size of its value, before another operation uses the value. */
function countSteps(environment: Environment): void {
  let evaluator: Evaluator | undefined;
  environment.registerFunction(
    'evaluator_(): bool',
    function (this: Evaluator): boolean {
      evaluator = this;
      return true;
    },
    { async: false },
  );
  environment.evaluate('evaluator_()');
  if (evaluator === undefined) throw new Error('the CEL library has no evaluator that counts');
  const run = evaluator.run.bind(evaluator);
  // Reading one key of a map does not read the rest of the map.
  let owner: ASTNode | undefined;
  evaluator.run = (node, context) => {
    const { op } = node;
    const isOwner = node === owner;
    meter.spend(op === 'rcall' ? 1 + stepsOfMethod(node.args[0]) : 1);
    owner = ownerOf(node);
    const value = run(node, context);
    // The operand of `-` in the smallest int is a number that is too large.
    if (op !== 'value' && (typeof value === 'bigint' || typeof value === 'object')) requireRange(value);
    if (typeof value === 'object' && refusing.has(node) && containsSecret(value)) meter.refuse(secretAsArgument);
    if (isOwner) return value;
    // The list that a macro fills is counted when it is complete.
    if (typeof value === 'string') meter.spend(stepsOf(value));
    else if (typeof value === 'object' && op !== '?:' && !op.startsWith('accu')) meter.spend(stepsOf(value));
    return value;
  };
}

/** Returns the operand from which a node reads a key; undefined if the node reads no key. */
function ownerOf(node: ASTNode): ASTNode | undefined {
  if (node.op === '.' || node.op === '[]') return node.args[0];
  if (node.op !== 'call' || node.args[0] !== 'has') return undefined;
  let base = node.args[1][0];
  while (base?.op === '.') base = base.args[0];
  return base;
}

export const environment = environmentOf();
