import type { ResourceType, Trigger } from './kinds.ts';
import type { VerificationType } from './verification.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Keys of an agent and their required values. */
export type Conditions = Readonly<Record<string, string>>;

/** The fields of a resource as written. Any string may contain expressions. */
export type DeclaredBody = Readonly<Record<string, Json>>;

/** The kind and body of a resource. The template and the triggers refer to other parts of the module. */
interface DeclaredResource {
  type: ResourceType;
  body: DeclaredBody;
  /** Id of the template that replaces `content`. */
  template: string | null;
  triggers: Readonly<Partial<Record<Trigger, readonly string[]>>>;
}

export interface Variant {
  when: Conditions;
  resource: DeclaredResource;
}

/** A condition that the machine evaluates: the path must exist. */
export interface OnlyIf {
  exists: string;
}

export interface ResourceDeclaration {
  id: string | null;
  name: string | null;
  depends_on: readonly string[];
  when: Conditions;
  /** Evaluated on the machine before the resource is applied. The path may contain expressions. */
  only_if: OnlyIf | null;
  /** An expression that yields a list. */
  for_each: string | null;
  /** The variants. If the module has `resource`, a single variant with an empty `when`. */
  variants: readonly Variant[];
  /** Whether the module has `resource` instead of `variants`. */
  universal: boolean;
}

export type ParameterType = 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'map';

export interface Parameter {
  type: ParameterType;
  default: Json;
  description: string | null;
}

interface Verification {
  type: VerificationType;
  body: DeclaredBody;
}

/** A module that has passed all checks that need no agent. Its expressions are not evaluated. */
export interface ModuleDocument {
  name: string;
  supports: readonly Conditions[];
  templates: readonly { id: string; content: string }[];
  parameters: Readonly<Record<string, Parameter>>;
  resources: readonly ResourceDeclaration[];
  verify: readonly Verification[];
}
