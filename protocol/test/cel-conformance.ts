import { tests } from '@bufbuild/cel-spec/testdata/conformance.js';
import type { SerializedIncrementalTest, SerializedIncrementalTestSuite } from '@bufbuild/cel-spec/testdata/tests.js';
import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { compile } from '../src/module/expression/compile.ts';
import { evaluateCel } from '../src/module/expression/evaluate.ts';
import { Meter } from '../src/module/expression/meter.ts';
import { entriesOf } from '../src/module/expression/values.ts';

/** A test case of the suite, and whether module expressions pass it. */
export interface ConformanceCase {
  /** File in the specification, such as `string_ext`. */
  readonly section: string;
  readonly group: string;
  readonly name: string;
  readonly passes: boolean;
  readonly expression: string;
  /** Whether the test case evaluates the expression although its types are wrong. */
  readonly disablesCheck: boolean;
  /** Whether the expression is refused before it is evaluated. */
  readonly isRefused: boolean;
  /** Whether a variable or the result is a message of Protocol Buffers. */
  readonly usesMessages: boolean;
  readonly usesEnums: boolean;
  /** Whether names are resolved in a container, or a variable has a dot in its name. */
  readonly usesQualifiedNames: boolean;
}

/** A value or a type in the suite, as the JSON of its Protocol Buffers message. */
type Message = Readonly<Record<string, unknown>>;

/** Runs the test cases of the CEL conformance suite as module expressions. */
export function conformanceCases(): ConformanceCase[] {
  return (tests.suites ?? []).flatMap((section) =>
    casesIn(section).map(([group, { original }]) => ({
      section: section.name,
      group,
      name: original.name ?? original.expr,
      passes: passes(original),
      expression: original.expr,
      disablesCheck: original.disableCheck === true,
      isRefused: 'message' in compile(original.expr),
      usesMessages: given(original).includes('objectValue'),
      usesEnums: given(original).includes('enumValue'),
      usesQualifiedNames:
        /^[a-z.]*[a-z]$/.test(original.expr) && Object.keys(original.bindings ?? {}).some((name) => name.includes('.')),
    })),
  );
}

const given = ({ bindings, value, typedResult }: SerializedIncrementalTest['original']): string =>
  JSON.stringify([bindings, value, typedResult]);

function casesIn(suite: SerializedIncrementalTestSuite): [string, SerializedIncrementalTest][] {
  const inner = (suite.suites ?? []).flatMap(casesIn);
  return [...(suite.tests ?? []).map((test): [string, SerializedIncrementalTest] => [suite.name, test]), ...inner];
}

/** @param original a `cel.expr.conformance.test.SimpleTest`, which expects `true` unless it specifies another result */
function passes(original: SerializedIncrementalTest['original']): boolean {
  const compiled = compile(original.expr);
  const typed = original.typedResult as { result?: Message; deducedType?: Message } | undefined;
  if ('message' in compiled) return 'evalError' in original;
  if (typed?.deducedType !== undefined && typeOf(typed.deducedType) !== compiled.type) return false;
  if (original.checkOnly === true) return true;
  const bindings = (original.bindings ?? {}) as Readonly<Record<string, { readonly value: Message }>>;
  const loops = new Map(Object.entries(bindings).map(([name, { value }]) => [name, celOf(value)]));
  const scope = {
    agent: { name: null, node_id: '', attributes: {}, tags: {} },
    parameters: new Map(),
    each: undefined,
    index: undefined,
    loops,
    meter: new Meter(),
  };
  const found = evaluateCel({ kind: 'cel', source: original.expr, compiled, offset: 0 }, scope);
  if ('fault' in found) return 'evalError' in original;
  if ('evalError' in original) return false;
  const expected = typed?.result ?? (original.value as Message | undefined) ?? { boolValue: true };
  return shown(found.value) === shown(celOf(expected));
}

const primitives: Readonly<Record<string, string>> = {
  BOOL: 'bool',
  INT64: 'int',
  UINT64: 'uint',
  DOUBLE: 'double',
  STRING: 'string',
  BYTES: 'bytes',
};

/** Returns a type from the suite in CEL notation. */
function typeOf(type: Message): string {
  if (typeof type.primitive === 'string') return primitives[type.primitive] ?? type.primitive;
  if ('null' in type) return 'null';
  if ('dyn' in type) return 'dyn';
  const { listType, mapType } = type as { listType?: Message; mapType?: Message };
  if (listType !== undefined) return `list<${typeOf((listType.elemType ?? { dyn: {} }) as Message)}>`;
  if (mapType !== undefined)
    return `map<${typeOf(mapType.keyType as Message)}, ${typeOf(mapType.valueType as Message)}>`;
  return JSON.stringify(type);
}

/** A type as a value. */
class TypeValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A value that module expressions cannot represent, such as a message. Not equal to any other value. */
class Unsupported {}

/** Converts a value from the suite to a value of the CEL library. */
function celOf(value: Message): unknown {
  const [[kind, content] = ['nullValue', null]] = Object.entries(value);
  switch (kind) {
    case 'int64Value':
      return BigInt(content as string);
    case 'uint64Value':
      return new UnsignedInt(BigInt(content as string));
    case 'doubleValue':
      return Number(content);
    case 'boolValue':
    case 'stringValue':
      return content;
    case 'nullValue':
      return null;
    case 'bytesValue':
      return Uint8Array.from(Buffer.from(content as string, 'base64'));
    case 'typeValue':
      return new TypeValue(content as string);
    case 'listValue':
      return ((content as { values?: Message[] }).values ?? []).map(celOf);
    case 'mapValue': {
      const entries = (content as { entries?: { key: Message; value: Message }[] }).entries ?? [];
      return new Map(entries.map(({ key, value }) => [celOf(key), celOf(value)]));
    }
    default:
      return new Unsupported();
  }
}

let unsupported = 0;

/** Returns a string that is equal for equal values of the same type, regardless of the order of keys. */
function shown(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return `int ${value}`;
  if (typeof value === 'number') return `double ${Object.is(value, -0) ? '-0' : value}`;
  if (typeof value === 'string') return `string ${JSON.stringify(value)}`;
  if (typeof value === 'boolean') return `bool ${value}`;
  if (value instanceof UnsignedInt) return `uint ${value.valueOf()}`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  if (value instanceof Duration) return `duration ${value}`;
  if (value instanceof Date) return `timestamp ${value.toISOString()}`;
  if (value instanceof TypeValue || /^Type<.*>$/.test(String(value))) return `type ${(value as TypeValue).name}`;
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`;
  if (value instanceof Map || value?.constructor === Object) {
    const entries = entriesOf(value as object).map(([key, item]) => `${shown(key)}: ${shown(item)}`);
    return `{${entries.sort().join(', ')}}`;
  }
  unsupported += 1;
  return `unsupported ${unsupported}`;
}
