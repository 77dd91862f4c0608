import type { ModuleFiles } from './files/module-file.ts';
import type { ResourceType, Trigger } from './kinds.ts';
import type { VerificationType } from './verification.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** The values that a condition accepts. A value must satisfy every property that is present. */
export interface ValueSet {
  readonly in?: readonly string[];
  /** Values that the condition does not accept. A set with only this property accepts an absent value. */
  readonly notIn?: readonly string[];
  /** Lowest version, in the order of `compareVersions`. */
  readonly from?: string;
  /** Exclusive upper bound of the accepted versions. */
  readonly below?: string;
}

/** Keys of an agent or parameters of the module, with the values that they must have. */
export type Conditions = Readonly<Record<string, ValueSet>>;

/** The fields of a resource as written. Any string may contain expressions. */
export type DeclaredBody = Readonly<Record<string, Json>>;

/** The kind and body of a resource. The template and the triggers refer to other parts of the module. */
export interface DeclaredResource {
  type: ResourceType;
  body: DeclaredBody;
  /** ID of the template that replaces `content`. */
  template: string | null;
  /** References to the resources that trigger this resource. */
  triggers: Readonly<Partial<Record<Trigger, readonly string[]>>>;
  /** The triggers that take effect before any later resource. */
  immediately: readonly string[];
}

export interface Variant {
  when: Conditions;
  /** Null if there is nothing to do on agents that match this variant. */
  resource: DeclaredResource | null;
}

/** A condition that the machine evaluates. All conditions in a list must be true. */
export type OnlyIf =
  | { readonly exists: string }
  /** A shell command that must exit with code 0. */
  | { readonly command: string }
  | { readonly not: OnlyIf }
  | readonly OnlyIf[];

/** The reverse of a trigger: when this resource changes, the named resource is reloaded, restarted, or rerun. */
export interface Notification {
  trigger: Trigger;
  /** Reference to a resource. */
  id: string;
  immediately: boolean;
}

/** The list or map over which `for_each` repeats a resource. */
export type Loop =
  /** `text` is a single expression, which must yield a list or a map. */
  | { readonly kind: 'expression'; readonly text: string }
  | { readonly kind: 'values'; readonly values: Json }
  /** Loops in order, outermost first. `list` is CEL without `${{`. */
  | { readonly kind: 'nested'; readonly loops: readonly { readonly name: string; readonly list: string }[] };

export interface ResourceDeclaration {
  id: string | null;
  name: string | null;
  /** References to resources: `id` or `module:id`, followed by `?` if the resource may be missing. */
  depends_on: readonly string[];
  /** Resources that this resource triggers when it changes. */
  notify: readonly Notification[];
  when: Conditions;
  /** Evaluated on the machine before the resource is applied. The strings may contain expressions. */
  only_if: OnlyIf | null;
  for_each: Loop | null;
  /** A CEL condition that the elements of `for_each` must satisfy. */
  where: string | null;
  /** The variants. If the module has `resource`, there is a single variant with an empty `when`. */
  variants: readonly Variant[];
  /** Whether the module has `resource` instead of `variants`. */
  universal: boolean;
}

export type ParameterType = 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'map';

interface ParameterVariant {
  when: Conditions;
  value: Json;
}

/** How layers of values are combined: only the highest layer is used, or all of them are merged from low to high. */
export type Merge = 'replace' | 'deep' | 'append' | 'unique';

export interface Parameter {
  type: ParameterType;
  /** Other JSON Schema keywords that the value must satisfy. */
  schema: Readonly<Record<string, Json>>;
  default: Json;
  /** Values for certain agents, which replace the default. */
  variants: readonly ParameterVariant[];
  merge: Merge;
  description: string | null;
}

/** A sorted list of values, or of mappings of values, from other agents. */
export interface Lookup {
  /** On all other agents, the list is empty. */
  when: Conditions;
  /** Selects approved agents. */
  selector: string;
  /** `agent.name`, `agent.node_id`, or an attribute or tag such as `attr.default_address`; or several, by key. */
  of: string | Readonly<Record<string, string>>;
}

interface Verification {
  when: Conditions;
  type: VerificationType;
  body: DeclaredBody;
}

/** A module that another module requires. */
export interface Requirement {
  module: string;
  /** Values for its parameters, which any assignment overrides. They contain no expressions. */
  with: Readonly<Record<string, Json>>;
}

/** A condition that the values of a module's parameters must satisfy. */
export interface ValueCheck {
  /** CEL without `${{`. */
  that: string;
  /** The error message if the condition is false. */
  message: string;
}

/** A module that has passed all checks that require no agent. Its expressions have not been evaluated. */
export interface ModuleDocument {
  name: string;
  supports: readonly Conditions[];
  requires: readonly Requirement[];
  /** Templates with the same ID are variants, which `when` selects. */
  templates: readonly { id: string; when: Conditions; content: string; isFile?: boolean }[];
  /** The files next to the module; absent if there are none. */
  files?: ModuleFiles;
  parameters: Readonly<Record<string, Parameter>>;
  require: readonly ValueCheck[];
  /** Values from other agents, which the orchestrator reads when it resolves the module. */
  lookups: Readonly<Record<string, Lookup>>;
  /** `any`, `latest`, or an expression: the version for packages that declare none. Absent for `any`. */
  packages?: string;
  resources: readonly ResourceDeclaration[];
  verify: readonly Verification[];
}
