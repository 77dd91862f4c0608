import type { ResourceType, Trigger } from './kinds.ts';
import type { VerificationType } from './verification.ts';

/** A value as JSON has it. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Keys of the agent and the values they must have. */
export type Conditions = Readonly<Record<string, string>>;

/** The fields of a resource as they are written: any string may hold expressions. */
export type DeclaredBody = Readonly<Record<string, Json>>;

/** A body for one kind, with what refers to other parts of the module taken out. */
interface DeclaredResource {
  type: ResourceType;
  body: DeclaredBody;
  /** Id of the template that stands for `content`. */
  template: string | null;
  /** Ids, by trigger. */
  triggers: Readonly<Partial<Record<Trigger, readonly string[]>>>;
}

export interface Variant {
  when: Conditions;
  resource: DeclaredResource;
}

/** A condition that the machine decides: the path exists there. */
export interface OnlyIf {
  exists: string;
}

export interface ResourceDeclaration {
  id: string | null;
  name: string | null;
  depends_on: readonly string[];
  when: Conditions;
  /** Asked of the machine when the turn of the resource comes. The path may hold expressions. */
  only_if: OnlyIf | null;
  /** An expression that yields a list. */
  for_each: string | null;
  /** One with an empty `when` where the module gives `resource`. */
  variants: readonly Variant[];
  /** How the module gives them. */
  universal: boolean;
}

export type ParameterType = 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'map';

export interface Parameter {
  type: ParameterType;
  /** Null: none. */
  default: Json;
  description: string | null;
}

interface Verification {
  type: VerificationType;
  body: DeclaredBody;
}

/** A module that has passed every check that can be made without an agent. Expressions are still in it, as text. */
export interface ModuleDocument {
  name: string;
  supports: readonly Conditions[];
  templates: readonly { id: string; content: string }[];
  parameters: Readonly<Record<string, Parameter>>;
  resources: readonly ResourceDeclaration[];
  verify: readonly Verification[];
}
