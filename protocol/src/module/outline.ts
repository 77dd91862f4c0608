import { isMapping } from '../mapping.ts';
import { readConditions } from './conditions/declared.ts';
import { readOnlyIf } from './conditions/only-if.ts';
import type {
  Conditions,
  DeclaredBody,
  DeclaredResource,
  Json,
  Lookup,
  Loop,
  ModuleDocument,
  OnlyIf,
  Parameter,
  ParameterType,
} from './document.ts';
import type { ModuleFiles } from './files/module-file.ts';
import { isExtensionKey } from './kinds/declared.ts';
import { isResourceType, kinds, type ResourceType, type Trigger } from './kinds.ts';
import { merges } from './parameters/layers.ts';
import { valueKeywords } from './parameters/value-keywords.ts';
import type { Path } from './source/tree.ts';
import { type VerificationType, verificationKinds } from './verification.ts';

/**
 * The well-formed parts of a module with their paths. Checks that involve several fields use the outline, so that a
 * malformed part does not hide errors in other parts.
 */
export interface Outline {
  name: string;
  supports: readonly { conditions: Conditions; path: Path }[];
  requires: readonly { module: string; with: Readonly<Record<string, Json>>; path: Path }[];
  templates: readonly { id: string | undefined; when: Conditions; content: string; path: Path }[];
  parameters: ReadonlyMap<string, { parameter: Parameter; path: Path }>;
  require: readonly { that: string; message: string; path: Path }[];
  lookups: ReadonlyMap<string, Lookup>;
  /** Version for packages that declare none; may be an expression. */
  packages: string | undefined;
  resources: readonly OutlineResource[];
  verify: readonly {
    when: Conditions;
    type: VerificationType;
    body: DeclaredBody;
    path: Path;
    bodyPath: Path;
  }[];
}

export interface Reference {
  id: string;
  path: Path;
  /** Whether a trigger takes effect before any later resource. */
  immediately?: boolean;
}

export interface OutlineResource {
  path: Path;
  id: string | undefined;
  name: string | undefined;
  dependsOn: readonly Reference[];
  notify: readonly (Reference & { trigger: Trigger })[];
  when: Conditions;
  onlyIf: OnlyIf | null;
  forEach: Loop | undefined;
  where: string | undefined;
  universal: boolean;
  /** The variants in order, or a single variant for `resource`. */
  variants: readonly OutlineVariant[];
  /** The variants that have a resource. */
  candidates: readonly Candidate[];
}

export interface OutlineVariant {
  when: Conditions;
  /** Path of the variant, or of the resource. */
  path: Path;
  /** Undefined if there is nothing to do, or the resource is malformed. */
  candidate: Candidate | undefined;
}

/** A possible body of a resource: from `resource`, or from a variant. */
export interface Candidate {
  path: Path;
  type: ResourceType;
  when: Conditions;
  body: DeclaredBody;
  template: Reference | undefined;
  triggers: Partial<Record<Trigger, Reference[]>>;
}

type Mapping = Readonly<Record<string, unknown>>;

export const mapping = (value: unknown): Mapping => (isMapping(value) ? value : {});
const sequence = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const readSources = (of: unknown): Lookup['of'] =>
  textOf(of) ?? Object.fromEntries(Object.entries(mapping(of)).map(([key, source]) => [key, textOf(source) ?? '']));

/** Returns the keys of an object whose values are not null, except for `x-` keys. */
export const givenKeys = (value: unknown): string[] =>
  Object.entries(mapping(value))
    .filter(([key, entry]) => !isExtensionKey(key) && entry !== null)
    .map(([key]) => key);

export function outline(value: unknown): Outline {
  const root = mapping(value);
  return {
    name: textOf(root.name) ?? '',
    supports: sequence(root.supports).map((clause, index) => ({
      conditions: readConditions(clause),
      path: ['supports', index],
    })),
    requires: sequence(root.requires).map((requirement, index) => ({
      module: textOf(mapping(requirement).module) ?? '',
      with: mapping(mapping(requirement).with) as Readonly<Record<string, Json>>,
      path: ['requires', index],
    })),
    templates: sequence(root.templates).map((template, index) => ({
      id: textOf(mapping(template).id),
      when: readConditions(mapping(template).when),
      content: textOf(mapping(template).content) ?? '',
      path: ['templates', index],
    })),
    parameters: new Map(
      Object.entries(mapping(root.parameters)).map(([name, parameter]) => [
        name,
        { parameter: parameterOf(parameter), path: ['parameters', name] },
      ]),
    ),
    require: sequence(root.require).map((check, index) => ({
      that: textOf(mapping(check).that) ?? '',
      message: textOf(mapping(check).message) ?? '',
      path: ['require', index],
    })),
    lookups: new Map(
      Object.entries(mapping(root.lookups)).map(([name, lookup]) => [
        name,
        {
          when: readConditions(mapping(lookup).when),
          selector: textOf(mapping(lookup).selector) ?? '',
          of: readSources(mapping(lookup).of),
        },
      ]),
    ),
    packages: textOf(root.packages),
    resources: sequence(root.resources).map((resource, index) => resourceOf(mapping(resource), ['resources', index])),
    verify: sequence(root.verify).flatMap((step, index) => verificationOf(mapping(step), ['verify', index])),
  };
}

const parameterOf = (value: unknown): Parameter => ({
  type: (textOf(mapping(value).type) ?? 'string') as ParameterType,
  schema: Object.fromEntries(
    givenKeys(value)
      .filter((key) => valueKeywords.includes(key))
      .map((key) => [key, mapping(value)[key] as Json]),
  ),
  default: (mapping(value).default ?? null) as Json,
  variants: sequence(mapping(value).variants).map((variant) => ({
    when: readConditions(mapping(variant).when),
    value: (mapping(variant).value ?? null) as Json,
  })),
  merge: merges.find((merge) => merge === mapping(value).merge) ?? 'replace',
  description: textOf(mapping(value).description) ?? null,
});

const referencesOf = (value: unknown, path: Path): Reference[] =>
  sequence(value).flatMap((entry, index) => {
    if (typeof entry === 'string') return [{ id: entry, path: [...path, index] }];
    const { id, immediately } = mapping(entry);
    return typeof id === 'string' ? [{ id, path: [...path, index], immediately: immediately === true }] : [];
  });

/** Keys of a `notify` entry, with the corresponding triggers. */
export const notificationTriggers = { reload: 'reload_on', restart: 'restart_on', rerun: 'rerun_on' } as const;
const notificationKeys = Object.keys(notificationTriggers) as (keyof typeof notificationTriggers)[];

const notificationsOf = (value: unknown, path: Path): OutlineResource['notify'] =>
  sequence(value).flatMap((entry, index) => {
    const key = notificationKeys.find((name) => typeof mapping(entry)[name] === 'string');
    if (key === undefined) return [];
    const immediately = mapping(entry).immediately === true;
    const id = String(mapping(entry)[key]);
    return [{ trigger: notificationTriggers[key], id, path: [...path, index, key], immediately }];
  });

function resourceOf(value: Mapping, path: Path): OutlineResource {
  const universal = value.variants === null || value.variants === undefined;
  const variants = universal
    ? [variantOf(value.resource, {}, path)]
    : sequence(value.variants).map((variant, index) =>
        variantOf(mapping(variant).resource, readConditions(mapping(variant).when), [...path, 'variants', index]),
      );
  return {
    path,
    id: textOf(value.id),
    name: textOf(value.name),
    dependsOn: referencesOf(value.depends_on, [...path, 'depends_on']),
    notify: notificationsOf(value.notify, [...path, 'notify']),
    when: readConditions(value.when),
    onlyIf: readOnlyIf(value.only_if),
    forEach: loopOf(value.for_each),
    where: textOf(value.where),
    universal,
    variants,
    candidates: variants.flatMap(({ candidate }) => candidate ?? []),
  };
}

/**
 * Reads `for_each`. A mapping whose values are all text declares nested loops. A mapping without text values is a
 * literal map. The schema refuses other mappings.
 */
function loopOf(value: unknown): Loop | undefined {
  if (typeof value === 'string') return { kind: 'expression', text: value };
  if (typeof value !== 'object' || value === null) return undefined;
  const names = Object.keys(value);
  if (Array.isArray(value) || names.every((name) => typeof mapping(value)[name] !== 'string'))
    return { kind: 'values', values: value as Json };
  return { kind: 'nested', loops: names.map((name) => ({ name, list: textOf(mapping(value)[name]) ?? '' })) };
}

function variantOf(value: unknown, when: Conditions, ownerPath: Path): OutlineVariant {
  const [candidate] = givenKeys(value)
    .filter(isResourceType)
    .slice(0, 1)
    .map((type) => {
      const path = [...ownerPath, 'resource', type];
      const declared = mapping(mapping(value)[type]);
      const kind = kinds[type];
      const { template, ...rest } = kind.templated ? declared : { ...declared, template: undefined };
      const body: Record<string, Json> = {};
      const triggers: Partial<Record<Trigger, Reference[]>> = {};
      for (const key of givenKeys(rest)) {
        const trigger = kind.triggers.find((name) => name === key);
        if (trigger !== undefined) triggers[trigger] = referencesOf(rest[key], [...path, trigger]);
        else if (rest[key] !== undefined) body[key] = rest[key] as Json;
      }
      return {
        path,
        type,
        when,
        body,
        template: typeof template === 'string' ? { id: template, path: [...path, 'template'] } : undefined,
        triggers,
      };
    });
  return { when, path: ownerPath, candidate };
}

function verificationOf(value: Mapping, path: Path): Outline['verify'][number][] {
  const when = readConditions(value.when);
  return givenKeys(value)
    .filter((key): key is VerificationType => Object.hasOwn(verificationKinds, key))
    .slice(0, 1)
    .map((type) =>
      type === 'command'
        ? { when, type, body: { command: value.command as Json }, path, bodyPath: path }
        : {
            when,
            type,
            body: Object.fromEntries(givenKeys(value[type]).map((key) => [key, mapping(value[type])[key] as Json])),
            path,
            bodyPath: [...path, type],
          },
    );
}

const declaredResource = ({ type, body, template, triggers }: Candidate): DeclaredResource => ({
  type,
  body,
  template: template?.id ?? null,
  triggers: Object.fromEntries(
    Object.entries(triggers).map(([trigger, references]) => [trigger, references.map(({ id }) => id)]),
  ),
  immediately: Object.values(triggers).flatMap((references) =>
    references.flatMap(({ id, immediately }) => (immediately === true ? [id] : [])),
  ),
});

/** Converts the outline of a module without errors to the module. */
export function documentOf(complete: Outline, files: ModuleFiles): ModuleDocument {
  return {
    name: complete.name,
    supports: complete.supports.map(({ conditions }) => conditions),
    requires: complete.requires.map(({ module, with: values }) => ({ module, with: values })),
    ...(files.size === 0 ? {} : { files }),
    templates: complete.templates.map(({ id, when, content, path }) => ({
      ...{ id: id ?? '', when, content },
      // The path of a file is the path of the reference to it.
      ...(path[0] === 'templates' ? {} : { isFile: true }),
    })),
    parameters: Object.fromEntries([...complete.parameters].map(([name, { parameter }]) => [name, parameter])),
    require: complete.require.map(({ that, message }) => ({ that, message })),
    lookups: Object.fromEntries(complete.lookups),
    ...(complete.packages === undefined ? {} : { packages: complete.packages }),
    resources: complete.resources.map((resource) => ({
      id: resource.id ?? null,
      name: resource.name ?? null,
      depends_on: resource.dependsOn.map(({ id }) => id),
      notify: resource.notify.map(({ trigger, id, immediately = false }) => ({ trigger, id, immediately })),
      when: resource.when,
      only_if: resource.onlyIf,
      for_each: resource.forEach ?? null,
      where: resource.where ?? null,
      universal: resource.universal,
      variants: resource.variants.map(({ when, candidate }) => ({
        when,
        resource: candidate === undefined ? null : declaredResource(candidate),
      })),
    })),
    verify: complete.verify.map(({ when, type, body }) => ({ when, type, body })),
  };
}
