import type { Field } from '../kinds/field.ts';
import type { Kind } from '../kinds/kind.ts';
import { kinds } from '../kinds.ts';
import { suggestion } from '../nearest.ts';
import type { Outline, OutlineResource } from '../outline.ts';
import type { Path } from '../source/tree.ts';
import { verificationKind } from '../verification.ts';
import {
  type CelExpression,
  type Expression,
  maximumFaults,
  type Part,
  parseExpressions,
  soleExpression,
  written,
} from './expression.ts';

/** @param offset offset of the expression in the text at `path` */
export type ReportExpression = (path: Path, message: string, offset: number) => void;

interface FieldContext {
  readonly path: Path;
  /** Whether the resource has `for_each`. */
  readonly each: boolean;
  readonly secrets: boolean;
  readonly shape: Field['shape'];
}

/**
 * Reports every expression that cannot be resolved for any agent: its syntax is wrong, it refers to an unknown value, or it
 * yields a type that the field does not accept.
 */
export function checkExpressions(outline: Outline, report: ReportExpression): void {
  const check = new ExpressionCheck(outline, report);
  const usesEach = new Set<string>();
  for (const template of outline.templates) {
    const parts = check.text(template.content, {
      path: [...template.path, 'content'],
      each: true,
      secrets: true,
      shape: 'text',
    });
    if (template.id !== undefined && parts.some(isOfElement)) {
      usesEach.add(template.id);
    }
  }
  for (const resource of outline.resources) checkResource(resource, check, usesEach, report);
  for (const step of outline.verify) {
    check.body(step.body, verificationKind(step.type), { path: step.bodyPath, each: false });
  }
}

function checkResource(
  resource: OutlineResource,
  check: ExpressionCheck,
  usesEach: ReadonlySet<string>,
  report: ReportExpression,
): void {
  const each = resource.forEach !== undefined;
  if (resource.name !== undefined) {
    check.text(resource.name, { path: [...resource.path, 'name'], each, secrets: false, shape: 'text' });
  }
  if (resource.onlyIfExists !== undefined) {
    const path = [...resource.path, 'only_if', 'exists'];
    check.text(resource.onlyIfExists, { path, each, secrets: false, shape: 'text' });
  }
  if (resource.forEach !== undefined) {
    if (!resource.forEach.includes('${{')) {
      report([...resource.path, 'for_each'], 'must be one expression, such as "${{ param.users }}"', 0);
    }
    check.text(resource.forEach, { path: [...resource.path, 'for_each'], each: false, secrets: false, shape: 'list' });
  }
  for (const { body, type, path, template } of resource.candidates) {
    check.body(body, kinds[type], { path, each });
    if (template !== undefined && !each && usesEach.has(template.id)) {
      report(template.path, 'the template uses "each", which exists only in a resource with for_each', 0);
    }
  }
}

const noSecret = 'a secret is not allowed here: the value is shown, or checked before secrets are known';

const isOfElement = (part: Part): boolean =>
  part.kind === 'cel'
    ? part.compiled.variables.has('each') || part.compiled.variables.has('index')
    : part.kind === 'expression' && part.root === 'each';

/** Types of CEL that a field never accepts, by the field's shape. Text is converted where a field allows it. */
const refusedTypes: Readonly<Record<Field['shape'], RegExp>> = {
  text: /^(list|map|bytes|type)\b/,
  choice: /^(list|map|bytes|type)\b/,
  list: /^(map|string|int|uint|double|bool|bytes|type|null)\b/,
  map: /^(list|string|int|uint|double|bool|bytes|type|null)\b/,
  integer: /^(list|map|bool|bytes|type|null)\b/,
  boolean: /^(list|map|int|uint|double|bytes|type|null)\b/,
};

class ExpressionCheck {
  readonly #parameters: Outline['parameters'];
  readonly #report: ReportExpression;

  constructor(outline: Outline, report: ReportExpression) {
    this.#parameters = outline.parameters;
    this.#report = report;
  }

  body(body: Readonly<Record<string, unknown>>, kind: Kind, { path, each }: { path: Path; each: boolean }): void {
    const identifying = kind.identifiedBy(body);
    for (const [name, value] of Object.entries(body)) {
      const field = kind.required[name] ?? kind.optional[name];
      if (field === undefined) continue;
      const context = { each, secrets: field.secrets && !identifying.includes(name), shape: field.shape };
      this.#value(value, { ...context, path: [...path, name] });
    }
  }

  #value(value: unknown, context: FieldContext): void {
    if (typeof value === 'string') {
      this.text(value, context);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        const segment = Array.isArray(value) ? Number(key) : key;
        if (typeof item === 'string') this.text(item, { ...context, path: [...context.path, segment], shape: 'text' });
      }
    }
  }

  text(text: string, context: FieldContext): readonly Part[] {
    // The schema refuses plain text for a list or a number.
    if (!text.includes('${{')) return [];
    const { parts, faults } = parseExpressions(text);
    for (const fault of faults) this.#report(context.path, fault.message, fault.offset);
    const isSole = context.shape !== 'text' && context.shape !== 'choice';
    if (isSole && faults.length === 0 && soleExpression(parts) === undefined) {
      this.#report(context.path, 'must be one expression and nothing else', 0);
      return parts;
    }
    let found = 0;
    for (const part of parts) {
      if (part.kind === 'text') continue;
      const message = part.kind === 'cel' ? this.#celFault(part, context) : this.#fault(part, context);
      if (message === undefined) continue;
      this.#report(context.path, message, part.offset);
      found += 1;
      if (found === maximumFaults) break;
    }
    return parts;
  }

  #celFault({ compiled }: CelExpression, context: FieldContext): string | undefined {
    const { variables, parameters, usesSecrets, type } = compiled;
    if (!context.each && variables.has('each')) return '"each" exists only in a resource with for_each';
    if (!context.each && variables.has('index')) return '"index" exists only in a resource with for_each';
    if (usesSecrets && !context.secrets) return noSecret;
    for (const name of parameters) {
      if (!this.#parameters.has(name)) return this.#unknownParameter(name);
    }
    if (!refusedTypes[context.shape].test(type)) return undefined;
    const joined = context.shape === 'text' && type.startsWith('list') ? ' without | join("…")' : '';
    return `the expression yields ${type}, which is not allowed here${joined}`;
  }

  #unknownParameter(name: string): string {
    const names = [...this.#parameters.keys()];
    return names.length === 0
      ? `there is no parameter "${name}": declare it under parameters`
      : `there is no parameter "${name}"${names.length > 100 ? '' : suggestion(name, names)}`;
  }

  #fault(expression: Expression, context: FieldContext): string | undefined {
    if (expression.separator !== null) {
      if (context.shape !== 'text') return 'join yields text, which is not allowed here';
      if (expression.root !== 'param' && expression.root !== 'each')
        return `${written(expression)} is text: only a list can be joined`;
    }
    if (expression.root === 'secrets') {
      return context.secrets ? undefined : noSecret;
    }
    if (expression.root === 'each') {
      if (!context.each) return '"each" exists only in a resource with for_each';
      return undefined;
    }
    const collection = context.shape === 'list' || context.shape === 'map';
    if (expression.root !== 'param') {
      return collection
        ? `${written(expression)} is text: a ${context.shape} comes from a parameter of type ${context.shape}`
        : undefined;
    }
    const declared = this.#parameters.get(expression.key)?.parameter;
    if (declared === undefined) return this.#unknownParameter(expression.key);
    if (expression.separator !== null) {
      return declared.type === 'list'
        ? undefined
        : `the parameter "${expression.key}" is a ${declared.type}: only a list can be joined`;
    }
    const isCollection = declared.type === 'list' || declared.type === 'map';
    if (collection ? declared.type !== context.shape : isCollection) {
      const joined = !collection && declared.type === 'list' ? ' without | join("…")' : '';
      return `the parameter "${expression.key}" is a ${declared.type}, which is not allowed here${joined}`;
    }
    return undefined;
  }
}
