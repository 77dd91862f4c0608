import { mapOnlyIf } from '../conditions/only-if.ts';
import { celPrefix } from '../conditions.ts';
import type { Conditions, Json } from '../document.ts';
import type { Field } from '../kinds/field.ts';
import type { Kind } from '../kinds/kind.ts';
import { kinds } from '../kinds.ts';
import { quoted, suggestion } from '../nearest.ts';
import type { Outline, OutlineResource } from '../outline.ts';
import type { Path } from '../source/tree.ts';
import { verificationKind } from '../verification.ts';
import type { Block } from './blocks.ts';
import { type Compiled, unknownName } from './compile.ts';
import { variableFault } from './control.ts';
import { maximumFaults, parseExpressions, parsePlain, soleExpression, written } from './expression.ts';
import type { CelExpression, Expression, Part } from './parts.ts';
import { namesOfTemplates, type TemplateNames } from './template-names.ts';

/** @param offset offset of the expression in the text at `path` */
export type ReportExpression = (path: Path, message: string, offset: number) => void;

interface FieldContext {
  readonly path: Path;
  /** Whether the resource has `for_each`. */
  readonly each: boolean;
  /** Variables of the enclosing loops; undefined if they are unknown, because a control word has an error. */
  readonly names: ReadonlySet<string> | undefined;
  /** For a template: the loop variables of the resources that use it; `names` has those of all resources. */
  readonly around?: ReadonlySet<string>;
  readonly secrets: boolean;
  /** `value`: any type if the text is a single expression, otherwise text. */
  readonly shape: Field['shape'] | 'loop' | 'value' | 'condition';
  /** Whether the text may have control words. */
  readonly blocks?: boolean;
}

const noNames: ReadonlySet<string> = new Set();

/**
 * Reports every expression that cannot be resolved for any agent: its syntax is invalid, it refers to an unknown value,
 * or it yields a type that the field does not accept. Warns about expressions that resolve, but are probably mistakes:
 * stored revisions may contain them.
 */
export function checkExpressions(
  outline: Outline,
  report: ReportExpression,
  warn: (path: Path, message: string) => void,
): void {
  const templates = namesOfTemplates(outline);
  const check = new ExpressionCheck(outline, templates, report, warn);
  for (const template of outline.templates) {
    const path = [...template.path, 'content'];
    check.text(template.content, {
      path,
      each: true,
      names: templates.variables,
      around: loopsAround(template.id, outline),
      secrets: true,
      shape: 'text',
      blocks: true,
    });
  }
  for (const { path, offset, message } of templates.cycles) report(path, message, offset);
  for (const { path, when } of [...outline.templates, ...outline.verify]) check.condition(when, [...path, 'when']);
  if (outline.packages !== undefined)
    check.text(outline.packages, { path: ['packages'], each: false, names: noNames, secrets: false, shape: 'text' });
  for (const [name, { when }] of outline.lookups) check.condition(when, ['lookups', name, 'when'], 'no lookups');
  for (const { path, parameter } of outline.parameters.values())
    for (const [index, { when }] of parameter.variants.entries())
      check.condition(when, [...path, 'variants', index, 'when'], 'no parameters');
  for (const { path, that } of outline.require) {
    // The schema refuses a condition that is empty or not text.
    if (that === '') continue;
    check.plain(that, { path: [...path, 'that'], each: false, names: noNames, secrets: false, shape: 'condition' });
  }
  for (const resource of outline.resources) checkResource(resource, check, templates, report);
  for (const step of outline.verify) {
    check.body(step.body, verificationKind(step.type), { path: step.bodyPath, each: false, names: noNames });
  }
}

/** Returns the loop variables of the resources that use a template. */
const loopsAround = (id: string | undefined, { resources }: Outline): ReadonlySet<string> =>
  new Set(
    resources
      .filter(({ candidates }) => id !== undefined && candidates.some(({ template }) => template?.id === id))
      .flatMap(({ forEach }) => (forEach?.kind === 'nested' ? forEach.loops.map(({ name }) => name) : [])),
  );

function checkResource(
  resource: OutlineResource,
  check: ExpressionCheck,
  templates: TemplateNames,
  report: ReportExpression,
): void {
  const each = resource.forEach !== undefined;
  const names = new Set(resource.forEach?.kind === 'nested' ? resource.forEach.loops.map(({ name }) => name) : []);
  check.condition(resource.when, [...resource.path, 'when']);
  if (!resource.universal)
    for (const variant of resource.variants) check.condition(variant.when, [...variant.path, 'when']);
  if (resource.name !== undefined) {
    check.text(resource.name, { path: [...resource.path, 'name'], each, names, secrets: false, shape: 'text' });
  }
  mapOnlyIf(resource.onlyIf, [...resource.path, 'only_if'], (text, _leaf, path) => {
    check.text(text, { path, each, names, secrets: false, shape: 'text' });
    return text;
  });
  checkLoop(resource, names, check, report);
  for (const { body, type, path, template } of resource.candidates) {
    check.body(body, kinds[type], { path, each, names });
    if (template === undefined) continue;
    for (const name of templates.namesOf(template.id)) {
      if (each && (name === 'each' || name === 'index' || names.has(name))) continue;
      const where =
        name === 'each' || name === 'index' ? 'exists only in a resource with for_each' : 'no loop defines here';
      report(template.path, `the template uses ${quoted(name)}, which ${where}`, 0);
    }
  }
}

function checkLoop(
  { path, forEach, where }: OutlineResource,
  names: ReadonlySet<string>,
  check: ExpressionCheck,
  report: ReportExpression,
): void {
  const at: Path = [...path, 'for_each'];
  if (forEach === undefined) {
    if (where !== undefined) report([...path, 'where'], 'filters the elements of for_each: add it', 0);
    return;
  }
  const outer = new Set<string>();
  if (forEach.kind === 'expression') {
    if (!forEach.text.includes('${{')) report(at, 'must be one expression, such as "${{ param.users }}"', 0);
    check.text(forEach.text, { path: at, each: false, names: outer, secrets: false, shape: 'loop' });
  } else if (forEach.kind === 'values') {
    check.values(forEach.values, at);
  } else {
    for (const { name, list } of forEach.loops) {
      const message = variableFault(name);
      if (message !== undefined) report([...at, name], message, 0);
      // The schema refuses a list that is empty or not text.
      if (list !== '')
        check.plain(list, { path: [...at, name], each: false, names: new Set(outer), secrets: false, shape: 'loop' });
      outer.add(name);
    }
  }
  if (where !== undefined)
    check.plain(where, { path: [...path, 'where'], each: true, names, secrets: false, shape: 'condition' });
}

const noSecret =
  'a secret is not allowed here, because the value is shown, or checked before secrets are known: use a parameter';

/** CEL types that a field never accepts, by the field's shape. Text is converted where a field allows it. */
const refusedTypes: Readonly<Record<FieldContext['shape'], RegExp>> = {
  text: /^(list|map|bytes|type)\b/,
  choice: /^(list|map|bytes|type)\b/,
  value: /^(bytes|type)\b/,
  any: /^(bytes|type)\b/,
  loop: /^(string|int|uint|double|bool|bytes|type|null)\b/,
  list: /^(map|string|int|uint|double|bool|bytes|type|null)\b/,
  map: /^(list|string|int|uint|double|bool|bytes|type|null)\b/,
  integer: /^(list|map|bool|bytes|type|null)\b/,
  boolean: /^(list|map|int|uint|double|bytes|type|null)\b/,
  condition: /^(?!bool\b|dyn\b)/,
};

class ExpressionCheck {
  readonly #parameters: Outline['parameters'];
  readonly #lookups: Outline['lookups'];
  readonly #report: ReportExpression;

  readonly #warn: (path: Path, message: string) => void;
  readonly #templates: TemplateNames;

  constructor(
    outline: Outline,
    templates: TemplateNames,
    report: ReportExpression,
    warn: (path: Path, message: string) => void,
  ) {
    this.#warn = warn;
    this.#parameters = outline.parameters;
    this.#templates = templates;
    this.#lookups = outline.lookups;
    this.#report = report;
  }

  body(
    body: Readonly<Record<string, unknown>>,
    kind: Kind,
    { path, each, names }: Pick<FieldContext, 'path' | 'each' | 'names'>,
  ): void {
    const identifying = kind.identifiedBy(body);
    for (const [name, value] of Object.entries(body)) {
      const field = kind.required[name] ?? kind.optional[name];
      if (field === undefined) continue;
      const secrets = field.secrets && !identifying.includes(name);
      const context = { each, names, secrets, shape: field.shape, blocks: name === 'content' };
      this.#value(value, { ...context, path: [...path, name] });
    }
  }

  #value(value: unknown, context: FieldContext): void {
    if (typeof value === 'string') {
      this.text(value, context);
    } else if (context.shape === 'any') {
      for (const [key, item] of Object.entries(value ?? {})) {
        const segment = Array.isArray(value) ? Number(key) : key;
        this.#value(item, { ...context, path: [...context.path, segment] });
      }
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        const segment = Array.isArray(value) ? Number(key) : key;
        if (typeof item === 'string') this.text(item, { ...context, path: [...context.path, segment], shape: 'text' });
      }
    }
  }

  /** Checks the strings in a list or map that is written as the value of a field. */
  values(value: Json, path: Path): void {
    if (typeof value === 'string')
      this.text(value, { path, each: false, names: noNames, secrets: false, shape: 'value' });
    else if (Array.isArray(value)) for (const [index, item] of value.entries()) this.values(item, [...path, index]);
    else if (typeof value === 'object' && value !== null)
      for (const [key, item] of Object.entries(value)) {
        // Keys are plain text, even if they contain `$${{`.
        if (/(?<!\$)\$\{\{/.test(key))
          this.#warn(path, 'expressions are not evaluated in keys: write a list of mappings, with the key as a value');
        this.values(item, [...path, key]);
      }
  }

  text(text: string, context: FieldContext): readonly Part[] {
    // The schema refuses plain text for a list or a number.
    if (!text.includes('${{')) return [];
    const { parts, blocks, faults } = parseExpressions(text);
    for (const fault of faults) this.#report(context.path, fault.message, fault.offset);
    const isSole = !['text', 'choice', 'value', 'any'].includes(context.shape);
    if (isSole && faults.length === 0 && soleExpression(parts) === undefined) {
      this.#report(context.path, 'must be one expression and nothing else', 0);
      return parts;
    }
    const control = parts.find((part) => part.kind === 'control');
    if (control !== undefined && context.blocks !== true)
      this.#report(context.path, `"${control.control.word}" is possible only in content and templates`, control.offset);
    else if (blocks !== null) this.#blocks(blocks, context, { left: maximumFaults });
    else
      this.#blocks(
        parts.filter((part) => part.kind !== 'control'),
        faults.length > 0 && context.blocks === true ? { ...context, names: undefined } : context,
        { left: maximumFaults },
      );
    return parts;
  }

  /** Checks a string that is CEL without `${{`. */
  plain(text: string, context: FieldContext): void {
    const parsed = parsePlain(text);
    const message = 'message' in parsed ? parsed.message : this.#celFault(parsed, context);
    if (message !== undefined) this.#report(context.path, message, 0);
  }

  /** Checks a condition in CEL. @param without names that have no values where the condition is evaluated */
  condition(when: Conditions, path: Path, without?: 'no parameters' | 'no lookups'): void {
    for (const key of Object.keys(when)) {
      if (!key.startsWith(celPrefix)) continue;
      const parsed = parsePlain(key.slice(celPrefix.length));
      const uses = (name: string): boolean => !('message' in parsed) && parsed.compiled.variables.has(name);
      if (uses('each') || uses('index'))
        this.#report(path, '`when` is evaluated before the loop: filter its elements with `where`', 0);
      else if (without === 'no parameters' && uses('param'))
        this.#report(path, 'parameters have no values here: use facts and tags', 0);
      else if (without !== undefined && uses('lookup'))
        this.#report(path, 'lookups have no values here: use facts and tags', 0);
      else
        this.plain(key.slice(celPrefix.length), {
          path,
          each: false,
          names: noNames,
          secrets: false,
          shape: 'condition',
        });
    }
  }

  #blocks(blocks: readonly Block[], context: FieldContext, faults: { left: number }): void {
    const report = (message: string | undefined, offset: number): void => {
      if (message === undefined || faults.left === 0) return;
      faults.left -= 1;
      this.#report(context.path, message, offset);
    };
    for (const block of blocks) {
      if (block.kind === 'text') continue;
      if (block.kind === 'for') {
        report(this.#celFault(block.list, { ...context, secrets: false, shape: 'loop' }), block.list.offset);
        const names = new Set([...(context.names ?? []), ...block.names]);
        const around = new Set([...(context.around ?? context.names ?? []), ...block.names]);
        this.#blocks(block.body, { ...context, names, around }, faults);
      } else if (block.kind === 'if') {
        for (const { condition, body } of block.branches) {
          if (condition !== null)
            report(this.#celFault(condition, { ...context, secrets: false, shape: 'condition' }), condition.offset);
          this.#blocks(body, context, faults);
        }
      } else if (block.kind === 'include') {
        report(this.#includeFault(block.id, context), block.offset);
      } else {
        report(block.kind === 'cel' ? this.#celFault(block, context) : this.#fault(block, context), block.offset);
      }
    }
  }

  #includeFault(id: string, { each, names }: FieldContext): string | undefined {
    const { ids } = this.#templates;
    if (!ids.has(id)) return `there is no template ${quoted(id)}${ids.size > 100 ? '' : suggestion(id, [...ids])}`;
    const missing = [...this.#templates.namesOf(id)].find((name) =>
      name === 'each' || name === 'index' ? !each : names?.has(name) === false,
    );
    return missing === undefined ? undefined : `the template uses ${quoted(missing)}, which no loop defines here`;
  }

  #celFault({ compiled }: CelExpression, context: FieldContext): string | undefined {
    const { variables, parameters, usesSecrets, type } = compiled;
    for (const name of compiled.types)
      if ((context.around ?? context.names)?.has(name) === true)
        this.#warn(
          context.path,
          `${quoted(name)} is a type in expressions, not the variable of the loop: choose another name for the variable`,
        );
    for (const name of compiled.ofLoops)
      if (context.names?.has(name) === false)
        return this.#parameters.has(name)
          ? `unknown name ${quoted(name)}: write param.${name}`
          : unknownName(name, context.names);
    if (!context.each && variables.has('each')) return '"each" exists only in a resource with for_each';
    if (!context.each && variables.has('index')) return '"index" exists only in a resource with for_each';
    if (usesSecrets && !context.secrets) return noSecret;
    const lookupFault = this.#lookupFault(compiled);
    if (lookupFault !== undefined) return lookupFault;
    for (const name of parameters) {
      if (!this.#parameters.has(name)) return this.#unknownParameter(name);
    }
    for (const name of compiled.secretParameters) {
      const declared = this.#parameters.get(name)?.parameter;
      if (declared?.type !== 'string' || declared.schema.format !== 'secret-name')
        return `the parameter "${name}" names a secret: declare it with { type: string, format: secret-name }`;
    }
    if (!refusedTypes[context.shape].test(type)) return undefined;
    if (context.shape === 'condition')
      return `the condition yields ${type}, not true or false: use a comparison, such as param.x == "y"`;
    const joined = context.shape === 'text' && type.startsWith('list') ? ' without | join("…")' : '';
    return `the expression yields ${type}, which is not allowed here${joined}`;
  }

  #lookupFault({ variables, references, usesSecrets, computesSecrets }: Compiled): string | undefined {
    if (usesSecrets && variables.has('lookup'))
      return 'lookup and secrets cannot be in one expression, because other machines choose the values of a lookup: use two expressions';
    if (computesSecrets && this.#lookups.size > 0)
      return 'in a module with lookups, the name of a secret must be fixed, as in secrets.NAME or secrets[param.NAME], because other machines choose the values of a lookup';
    const prefix = 'lookup.';
    for (const reference of references) {
      const name = reference.slice(prefix.length);
      if (!reference.startsWith(prefix) || this.#lookups.has(name)) continue;
      const names = [...this.#lookups.keys()];
      return `there is no lookup "${name}"${names.length === 0 ? ': declare it under lookups' : suggestion(name, names)}`;
    }
    return undefined;
  }

  #unknownParameter(name: string): string {
    const names = [...this.#parameters.keys()];
    return names.length === 0
      ? `there is no parameter "${name}": declare it under parameters`
      : `there is no parameter "${name}"${names.length > 100 ? '' : suggestion(name, names)}`;
  }

  #fault(expression: Expression, context: FieldContext): string | undefined {
    if (expression.separator !== null) {
      if (!['text', 'value', 'any'].includes(context.shape)) return 'join yields text, which is not allowed here';
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
    const wanted = context.shape === 'loop' ? 'list' : context.shape;
    const collection = wanted === 'list' || wanted === 'map';
    if (expression.root !== 'param') {
      return collection
        ? `${written(expression)} is text: a ${wanted} comes from a parameter of type ${wanted}`
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
    if (context.shape === 'value' || context.shape === 'any' || (context.shape === 'loop' && declared.type === 'map'))
      return undefined;
    if (collection ? declared.type !== wanted : isCollection) {
      const joined = !collection && declared.type === 'list' ? ' without | join("…")' : '';
      return `the parameter "${expression.key}" is a ${declared.type}, which is not allowed here${joined}`;
    }
    return undefined;
  }
}
