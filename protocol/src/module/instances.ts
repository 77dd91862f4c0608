import { type BodyFault, bodyFaults, evaluateBody } from './body.ts';
import { type LookupValues, lookupValues } from './composition/lookups.ts';
import { mapOnlyIf, onlyIfFault } from './conditions/only-if.ts';
import { type AgentFacts, described, factOf, matches } from './conditions.ts';
import type { DeclaredResource, Json, ModuleDocument, OnlyIf, ResourceDeclaration } from './document.ts';
import { evaluateText, maximumText } from './expression/evaluate.ts';
import { Meter } from './expression/meter.ts';
import { reasonOrValue } from './expression/values.ts';
import type { Scope } from './expression/variables.ts';
import { withSource } from './files/sourced.ts';
import { combinationFaults } from './kinds/field-combinations.ts';
import { declareVersion, packageDefault } from './kinds/packages.ts';
import { identify, kinds, type Trigger } from './kinds.ts';
import { type LoopElement, loopElements } from './loops.ts';
import type { Layer } from './parameters/layers.ts';
import { failedChecks } from './parameters/value-checks.ts';
import { type LayeredParameters, layeredParameters } from './parameters.ts';
import type { UnfilledBody, UnfilledResource } from './secrets.ts';
import type { Path } from './source/tree.ts';
import { chooseVariant } from './variants.ts';

/** A resource of one module for one agent, before modules are merged. */
export interface Instance extends Omit<UnfilledResource, 'depends_on' | 'immediate_on' | Trigger> {
  /** Path of the body in the module. */
  readonly path: Path;
  /** References to resources, which the merge converts to keys. */
  readonly dependsOnIds: readonly string[];
  readonly triggerIds: Readonly<Partial<Record<Trigger, readonly string[]>>>;
  readonly immediateIds: readonly string[];
  readonly notifications: ResourceDeclaration['notify'];
  /** The ID in the module. All instances from the same `for_each` share it. */
  readonly declaredId: string | null;
}

interface ModuleFault {
  /** Path in the module. */
  readonly path: Path;
  readonly message: string;
}

export interface Instances {
  instances: Instance[];
  faults: ModuleFault[];
  scope: Scope;
  /** Names of the lookups whose conditions hold. */
  lookups: readonly string[];
  /** Parameters that layers of equal precedence set to different values. If there are any, nothing else is resolved. */
  conflicts: LayeredParameters['conflicts'];
}

/**
 * The remaining size of a desired state. Limits the size of the operation and the memory used for resolution. Templates
 * and lists multiply text, so it is counted during the expansion.
 */
export class ResolutionBudget {
  /** Counts the work of the agent's expressions. */
  readonly meter = new Meter();
  #resources = 20_000;
  #characters = maximumText;

  /**
   * Counts a resource; if `resources` is 0, counts only characters.
   * @returns the reason if a limit is exceeded, otherwise undefined
   */
  spend(characters: number, resources = 1): string | undefined {
    this.#resources -= resources;
    this.#characters -= characters;
    if (this.#resources < 0) return 'the desired set has more than 20000 resources: remove modules or shorten lists';
    if (this.#characters < 0)
      return 'the desired set has more than 32 MiB of text, including inserted templates: remove modules or shorten templates';
    return undefined;
  }
}

export const charactersOf = (value: unknown): number => {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let sum = 0;
  for (const item of Object.values(value)) sum += charactersOf(item);
  return sum;
};

/** Number of errors in a module after which the remaining resources are not resolved. */
const maximumFaults = 500;

/** Resolves one module for one agent: clauses, `when`, variants, `for_each`, templates, and expressions. */
export function instancesOf(
  module: ModuleDocument,
  agent: AgentFacts,
  given: Readonly<Record<string, readonly Layer[]>>,
  lookups: LookupValues,
  budget: ResolutionBudget,
): Instances {
  const { values, faults: parameterFaults, conflicts } = layeredParameters(module.parameters, given, agent);
  const { meter } = budget;
  const looked = lookupValues(module.lookups, lookups, agent, { parameters: values, meter });
  const outer: Scope = { agent, parameters: values, lookups: looked.values, each: undefined, index: undefined, meter };
  const faults: ModuleFault[] = parameterFaults.map(({ name, message }) => ({
    path: ['parameters', name],
    message,
  }));
  if (conflicts.length > 0) return { instances: [], faults, scope: outer, lookups: looked.used, conflicts };
  if (!module.supports.some((clause) => matches(clause, agent))) {
    faults.push({ path: ['supports'], message: unsupported(module, agent) });
    return { instances: [], faults, scope: outer, lookups: looked.used, conflicts };
  }
  faults.push(...looked.faults.map(({ name, path, message }) => ({ path: ['lookups', name, ...path], message })));
  // If values have errors, the conditions that read them would only repeat these errors.
  const unmet = faults.length > 0 ? [] : failedChecks(module.require, outer);
  if (unmet.length > 0) {
    faults.push(...unmet.map(({ index, message }) => ({ path: ['require', index], message })));
    return { instances: [], faults, scope: outer, lookups: looked.used, conflicts };
  }
  const [packages, packagesFault] = packagesOf(module, outer);
  if (packagesFault !== undefined) faults.push({ path: ['packages'], message: packagesFault });
  const templates = chosenTemplates(module, outer);
  const scope: Scope = { ...outer, templates };
  const instances: Instance[] = [];
  const ids = new Set<string>();
  for (const [index, declaration] of module.resources.entries()) {
    const path: Path = ['resources', index];
    const reportOf =
      (id: string | null, index?: number, element?: Json): Report =>
      (at, message) => {
        faults.push({ path: [...path, ...at], message: `${labelOf(id, index, element)}${message}` });
      };
    const report = reportOf(declaration.id);
    const holds = reasonOrValue(() => matches(declaration.when, agent, scope));
    if (typeof holds === 'string') report(['when'], holds);
    if (holds !== true) continue;
    const chosen = choose(declaration, scope, report);
    if (chosen === undefined) continue;
    for (const { id, ...element } of repetitions(declaration, scope, report)) {
      if (id !== null && ids.has(id)) report(['id'], `the id "${id}" is used twice after for_each is expanded`);
      if (id !== null) ids.add(id);
      const ofElement = declaration.for_each === null ? report : reportOf(id, element.index, element.each);
      const repeated = declaration.for_each === null ? scope : { ...scope, ...element };
      const instance = instanceOf(module.name, declaration, chosen, id, repeated, templates, ofElement);
      const sourced =
        instance && withSource(instance, module.files, (message) => ofElement([...chosen.path, 'source'], message));
      if (sourced === undefined) {
        // Every element of a long list may have an error.
        if (faults.length > maximumFaults) return { instances, faults, scope, lookups: looked.used, conflicts };
        continue;
      }
      for (const each of sourced) {
        declareVersion(each.type, each.body, packages);
        const exceeded = budget.spend(charactersOf([each.body, each.deferred, each.name, each.only_if]));
        if (exceeded !== undefined) {
          report([], exceeded);
          return { instances, faults, scope, lookups: looked.used, conflicts };
        }
        instances.push({ ...each, path: [...path, ...chosen.path] });
      }
    }
  }
  return { instances, faults, scope, lookups: looked.used, conflicts };
}

/** Returns the version for packages that declare none, and the error if the module declares an invalid version. */
function packagesOf({ packages }: ModuleDocument, scope: Scope): [string, string | undefined] {
  if (packages === undefined) return ['any', undefined];
  const evaluated = evaluateText(packages, scope);
  if (evaluated.kind === 'omitted') return ['any', undefined];
  if (evaluated.kind === 'fault') return ['any', evaluated.message];
  const parsed = packageDefault.resolved.safeParse(evaluated.kind === 'value' ? evaluated.value : null);
  return parsed.success ? [parsed.data, undefined] : ['any', parsed.error.issues[0]?.message];
}

/** Returns the IDs of a resource with its loop values: one ID, or one for each element of `for_each`. */
function repetitions(
  { id, for_each, where }: ResourceDeclaration,
  scope: Scope,
  report: Report,
): (Partial<Omit<LoopElement, 'label'>> & { id: string | null })[] {
  if (for_each === null) return [{ id }];
  return loopElements(for_each, where, scope, report).map(({ label, ...element }) => ({
    id: id === null ? null : `${id}[${label}]`,
    ...element,
  }));
}

type Report = (path: Path, message: string) => void;

/** Returns the beginning of a message about a resource, such as `resource "site[2]" ("b.example"): `. */
function labelOf(id: string | null, index?: number, element?: Json): string {
  const name = id === null ? (index === undefined ? '' : `element ${index}`) : `resource "${id}"`;
  if (element === undefined) return name === '' ? '' : `${name}: `;
  const text = JSON.stringify(element);
  return `${name} (${text.length > 80 ? `${text.slice(0, 80)}…` : text}): `;
}

function unsupported({ supports }: ModuleDocument, agent: AgentFacts): string {
  if (supports.length === 0) return 'the module has no supports clause, so it matches no agent: add one';
  const keys = [...new Set(supports.flatMap((clause) => Object.keys(clause)))];
  const facts = keys.map((key) => `${key}=${factOf(agent, key) ?? '(none)'}`).join(' ');
  const clauses = supports.slice(0, 5).map(described).join(' | ');
  return `the agent has ${facts} and matches no supports clause: ${clauses}${supports.length > 5 ? ' | …' : ''}`;
}

type ChosenTemplate = { readonly content: string } | { readonly fault: string };

/** Chooses among the templates with the same id, as among variants. */
function chosenTemplates(module: ModuleDocument, scope: Scope): ReadonlyMap<string, ChosenTemplate> {
  const byId = Map.groupBy(module.templates, ({ id }) => id);
  return new Map(
    [...byId].map(([id, templates]): [string, ChosenTemplate] => {
      const conditions = templates.map(({ when }) => when);
      const choice = reasonOrValue(() => chooseVariant(conditions, scope.agent, scope));
      if (typeof choice === 'string') return [id, { fault: choice }];
      if (choice.kind === 'chosen') return [id, { content: templates[choice.index]?.content ?? '' }];
      const names = conditions.slice(0, 5).map(described).join(' | ');
      const fault =
        choice.kind === 'none'
          ? `no template "${id}" matches the agent; they are for ${names}`
          : `several templates "${id}" match the agent with the same number of keys: ${names}; add a key to one of them`;
      return [id, { fault }];
    }),
  );
}

interface Chosen {
  readonly resource: DeclaredResource;
  /** Path of the body in the resource. */
  readonly path: Path;
}

/** Returns the resource of the matching variant; undefined if it has none, or after an error. */
function choose({ variants, universal }: ResourceDeclaration, scope: Scope, report: Report): Chosen | undefined {
  const conditions = variants.map(({ when }) => when);
  const choice = reasonOrValue(() => chooseVariant(conditions, scope.agent, scope));
  if (typeof choice === 'string') {
    report(['variants'], choice);
    return undefined;
  }
  if (choice.kind === 'chosen') {
    const resource = variants[choice.index]?.resource ?? null;
    if (resource === null) return undefined;
    const owner = universal ? [] : ['variants', choice.index];
    return { resource, path: [...owner, 'resource', resource.type] };
  }
  const names = variants.map(({ when }) => described(when));
  if (choice.kind === 'none') {
    report(['variants'], `no variant matches the agent; the variants are ${names.slice(0, 5).join(' | ')}`);
  } else {
    const tied = choice.indices.map((index) => names[index]).join(' | ');
    report(
      ['variants'],
      `these variants match the agent with the same number of keys: ${tied}; add a key to one of them`,
    );
  }
  return undefined;
}

function instanceOf(
  module: string,
  declaration: ResourceDeclaration,
  { resource, path }: Chosen,
  id: string | null,
  scope: Scope,
  templates: ReadonlyMap<string, ChosenTemplate>,
  report: Report,
): Omit<Instance, 'path'> | undefined {
  const kind = kinds[resource.type];
  let content: string | undefined;
  if (resource.template !== null) {
    const template = templates.get(resource.template);
    if (template !== undefined && 'fault' in template) {
      report([...path, 'template'], template.fault);
      return undefined;
    }
    content = template?.content ?? '';
  }
  const evaluated = evaluateBody(resource.body, kind, scope, content);
  const { body, deferred } = evaluated;
  let { unchecked } = evaluated;
  if (resource.type === 'script' && body.manages === undefined && id !== null) {
    body.manages = id;
    unchecked = undefined;
  }
  // `ensure: present` is the default, so declarations with and without it are equal.
  if (body.ensure === 'present') delete body.ensure;
  let faults: readonly BodyFault[] = evaluated.faults;
  if (faults.length === 0) faults = bodyFaults({ body, deferred, unchecked }, kind);
  if (faults.length === 0) faults = combinationFaults(kind, body);
  const [name, nameFault] = label(declaration.name, scope);
  if (nameFault !== undefined) report(['name'], nameFault);
  const onlyIf = condition(declaration.only_if, scope, report);
  for (const fault of faults) {
    const isTemplate = resource.template !== null && fault.path[0] === 'content';
    report([...path, ...(isTemplate ? ['template'] : fault.path)], fault.message);
  }
  if (faults.length > 0) return undefined;
  kind.normalise?.(body);
  return {
    ...identify(resource.type, body),
    module,
    id,
    declaredId: declaration.id,
    name,
    type: resource.type,
    body: body as UnfilledBody,
    deferred,
    sensitive_fields: sensitiveFields(resource.type, body, deferred),
    ...(onlyIf === null ? {} : { only_if: onlyIf }),
    dependsOnIds: declaration.depends_on,
    triggerIds: resource.triggers,
    immediateIds: resource.immediately,
    notifications: declaration.notify,
  };
}

function label(name: string | null, scope: Scope): [string | null, string | undefined] {
  if (name === null) return [null, undefined];
  const evaluated = evaluateText(name, scope);
  if (evaluated.kind === 'omitted') return [null, undefined];
  if (evaluated.kind === 'value') return [String(evaluated.value), undefined];
  return [null, evaluated.kind === 'fault' ? evaluated.message : 'cannot contain a secret'];
}

/** Evaluates the paths and commands of a condition. */
const condition = (onlyIf: OnlyIf | null, scope: Scope, report: Report): OnlyIf | null =>
  mapOnlyIf(onlyIf, ['only_if'], (declared, leaf, path) => {
    const evaluated = evaluateText(declared, scope);
    if (evaluated.kind === 'omitted') return null;
    const text = evaluated.kind === 'value' ? String(evaluated.value) : '';
    const fault =
      evaluated.kind === 'value'
        ? onlyIfFault(text, leaf)
        : evaluated.kind === 'fault'
          ? evaluated.message
          : 'cannot contain a secret';
    if (fault !== undefined) report(path, fault);
    return text;
  });

/** Returns the body fields whose values are hidden. */
export function sensitiveFields(
  type: Instance['type'],
  body: Readonly<Record<string, Json>>,
  deferred: Instance['deferred'],
): string[] {
  // A script's output can contain any of its values, so one secret makes all of them sensitive.
  if (type === 'script')
    return deferred.length === 0 ? [] : ['apply', 'check', 'undo', 'environment'].filter((field) => field in body);
  const fields = new Set(deferred.map(({ path }) => String(path[0])));
  for (const field of kinds[type].sensitive) if (field in body) fields.add(field);
  return [...fields].sort();
}
