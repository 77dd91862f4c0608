import type { Fault } from '../../errors.ts';
import { isMapping } from '../../mapping.ts';
import { givenLookupFaults } from '../composition/lookups.ts';
import { requiresOf, withRequired } from '../composition/requires.ts';
import type { AgentFacts } from '../conditions.ts';
import type { DeclaredResource, Json, ModuleDocument } from '../document.ts';
import { parseExpressions, written } from '../expression/expression.ts';
import { kinds } from '../kinds.ts';
import { quoted } from '../nearest.ts';
import type { Layer } from '../parameters/layers.ts';
import { parameterValue } from '../parameters.ts';
import { layersOf, type Resolution, type ResolutionRequest, resolveDesiredSet } from '../resolve.ts';
import type { UnfilledResource, UnfilledVerification } from '../secrets.ts';
import { pointer } from '../source/json-pointer.ts';
import { located, placeOf } from '../source/places.ts';
import type { Path } from '../source/tree.ts';

/** Resolves modules for one agent, and reports where each value comes from. */

export interface Place {
  readonly module: string;
  readonly line: number | null;
  readonly column: number | null;
}

export interface ExplainedValue {
  /** Null for a hidden value. Secrets are shown as expressions, because their values are unknown here. */
  readonly value: Json;
  readonly hidden: boolean;
  /** Position of the value in its source; null for a value that is not in the module, such as a default. */
  readonly place: Place | null;
  /** Names that the value's expressions read, such as `param.port`. */
  readonly from: readonly string[];
}

export interface ExplainedResource {
  readonly module: string;
  readonly id: string | null;
  /** Position or key of the element of `for_each`; null without a loop. */
  readonly element: string | null;
  readonly type: string;
  readonly identity: string;
  readonly name: string | null;
  /** The declarations that the resource combines, in order. */
  readonly places: readonly Place[];
  readonly fields: Readonly<Record<string, ExplainedValue>>;
  readonly only_if: Json;
  /**
   * Resources that come before this resource: `id`, `module:id`, or the kind and identity of a resource without an ID.
   */
  readonly depends_on: readonly string[];
  readonly reload_on: readonly string[];
  readonly restart_on: readonly string[];
  readonly rerun_on: readonly string[];
}

export interface ExplainedParameter {
  readonly value: Json;
  /**
   * `given` if an assignment or a file sets the value; otherwise, the part of the parameter's declaration that does.
   */
  readonly origin: 'given' | 'variant' | 'default';
  /** Source of the layer with the highest precedence, and the name of its assignment or module. */
  readonly from: Layer['from'];
  readonly name: string | null;
  /** Position of the declaration. */
  readonly place: Place;
}

export interface Explained {
  readonly resources: readonly ExplainedResource[];
  readonly verify: readonly { module: string; type: string; body: Readonly<Record<string, Json>> }[];
  readonly parameters: Readonly<Record<string, Readonly<Record<string, ExplainedParameter>>>>;
  readonly secrets: readonly string[];
}

/** @returns the resources in execution order with their origins, or the errors */
export function explainDesiredSet(
  request: ResolutionRequest,
): ({ ok: true } & Explained) | Extract<Resolution, { ok: false }> {
  const modules = new Map(request.modules.map((module) => [module.name, module]));
  const missing = request.modules.flatMap(({ name: by, requires, lookups }) => [
    ...requires.flatMap(({ module }, index) => (modules.has(module) ? [] : missingModule(by, module, index))),
    ...givenLookupFaults(lookups, request.lookups?.[by] ?? {}).map(({ name, path, message }) => ({
      path: pointer(['modules', by, 'lookups', name, ...path]),
      message: `module "${by}": ${message}`,
    })),
  ]);
  if (missing.length > 0)
    return { ok: false, code: 'module_unresolved', faults: located(missing, [...modules.values()]) };
  const names = withRequired([...modules.keys()], requiresOf(request.modules));
  const ordered = names.map((name) => modules.get(name) as ModuleDocument);
  const layers = layersOf(request, ordered);
  const resolution = resolveDesiredSet({ ...request, modules: ordered, withDeclarations: true });
  if (!resolution.ok) return resolution;
  const labels = labelsOf(resolution.resources);
  return {
    ok: true,
    resources: resolution.resources.map((resource, index) => {
      const declarations = (resolution.declarations?.[index] ?? []).map(({ resource, path }) => ({
        module: modules.get(resource.module) as ModuleDocument,
        resource,
        path,
      }));
      const inModule = (keys: readonly string[]) => keys.map((key) => labels(key, resource.module));
      return {
        module: resource.module,
        id: resource.id,
        element: elementOf(resource.id),
        type: resource.type,
        identity: resource.identity,
        name: resource.name,
        places: declarations.map(({ module, path }) => place(module, path)),
        fields: fieldsOf(resource, declarations),
        only_if: (resource.only_if ?? null) as Json,
        depends_on: inModule(resource.depends_on),
        reload_on: inModule(resource.reload_on),
        restart_on: inModule(resource.restart_on),
        rerun_on: inModule(resource.rerun_on),
      };
    }),
    verify: resolution.verify.map(({ module, type, body, deferred }) => ({
      module,
      type,
      body: shown(body, deferred),
    })),
    parameters: Object.fromEntries(
      [...modules.values()].map((module) => [
        module.name,
        parametersOf(module, Object.hasOwn(layers, module.name) ? (layers[module.name] ?? {}) : {}, request.agent),
      ]),
    ),
    secrets: resolution.secrets,
  };
}

const missingModule = (by: string, module: string, index: number): Fault => ({
  path: pointer(['modules', by, 'requires', index]),
  message: `module ${quoted(by)} requires ${quoted(module)}, which is not among the given modules: add it`,
});

const place = (module: ModuleDocument, path: Path): Place => ({
  module: module.name,
  ...(placeOf(module, path) ?? { line: null, column: null }),
});

const elementOf = (id: string | null): string | null => /\[([^[\]]*)\]$/.exec(id ?? '')?.[1] ?? null;

/** Returns a function that returns the label for the resource with a key, relative to a module. */
function labelsOf(resources: readonly UnfilledResource[]): (key: string, from: string) => string {
  const byKey = new Map(resources.map((resource) => [resource.key, resource]));
  return (key, from) => {
    const resource = byKey.get(key);
    if (resource === undefined) return key;
    const name = resource.id ?? `${resource.type} ${resource.identity}`;
    return resource.module === from ? name : `${resource.module}:${name}`;
  };
}

interface Declared {
  readonly module: ModuleDocument;
  readonly resource: UnfilledResource;
  readonly path: Path;
}

function fieldsOf(resource: UnfilledResource, declarations: readonly Declared[]): Record<string, ExplainedValue> {
  const body = shown(resource.body, resource.deferred);
  const hidden = new Set<string>(kinds[resource.type].sensitive);
  const isInserted = new Set(resource.deferred.map(({ path }) => path[0]));
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const isHidden = hidden.has(name) && !isInserted.has(name);
      const giver = declarations.find(({ resource: { body } }) => Object.hasOwn(body, name));
      const origin = giver === undefined ? { place: null, from: [] } : originOf(giver, name);
      return [name, { value: isHidden ? null : value, hidden: isHidden, ...origin }];
    }),
  );
}

/** Returns the declaration of a resource in its module. */
function declaredAt({ module, path }: Declared): DeclaredResource | null | undefined {
  const declaration = module.resources[Number(path[1])];
  return declaration?.variants[path[2] === 'variants' ? Number(path[3]) : 0]?.resource;
}

function originOf(declared: Declared, field: string): Pick<ExplainedValue, 'place' | 'from'> {
  const source = declaredAt(declared);
  const { module, path } = declared;
  if (source === null || source === undefined) return { place: place(module, path), from: [] };
  if (Object.hasOwn(source.body, field))
    return { place: place(module, [...path, field]), from: namesIn(source.body[field] as Json) };
  if (field !== 'content' || source.template === null) return { place: null, from: [] };
  const templates = module.templates.flatMap(({ id, content, isFile = false }, index) =>
    id === source.template ? [{ content, index, isFile }] : [],
  );
  const [only] = templates;
  const at: Path =
    templates.length === 1 && only?.isFile === false ? ['templates', only.index, 'content'] : [...path, 'template'];
  return { place: place(module, at), from: [...new Set(templates.flatMap(({ content }) => namesIn(content)))].sort() };
}

/** Returns the names that the expressions in a value read, sorted. */
export function namesIn(value: Json): string[] {
  const names = new Set<string>();
  const visit = (item: Json): void => {
    if (typeof item === 'string') {
      for (const part of parseExpressions(item).parts) {
        if (part.kind === 'expression') names.add(written(part));
        else if (part.kind === 'cel') {
          const { references, variables } = part.compiled;
          for (const name of references) names.add(name);
          const isNamed = (root: string) => [...references].some((name) => name.startsWith(`${root}.`));
          for (const name of variables) if (!isNamed(name)) names.add(name);
        }
      }
    } else if (Array.isArray(item)) item.forEach(visit);
    else if (isMapping(item)) Object.values(item).forEach(visit);
  };
  visit(value);
  return [...names].sort();
}

/** Returns a body with an expression in place of each secret. */
function shown(body: Readonly<Record<string, Json>>, deferred: UnfilledVerification['deferred']): Record<string, Json> {
  const copy = structuredClone(body) as Record<string, Json>;
  for (const { path, parts } of deferred) {
    const text = parts.map((part) => ('text' in part ? part.text : `\${{ secrets.${part.secret} }}`)).join('');
    let owner: Json = copy;
    for (const segment of path.slice(0, -1))
      owner = (Array.isArray(owner) ? owner[Number(segment)] : (owner as { [key: string]: Json })[segment]) as Json;
    const last = path.at(-1) as string | number;
    if (Array.isArray(owner)) owner[Number(last)] = text;
    else if (isMapping(owner)) owner[last] = text;
  }
  return copy;
}

function parametersOf(
  module: ModuleDocument,
  layers: Readonly<Record<string, readonly Layer[]>>,
  agent: AgentFacts,
): Record<string, ExplainedParameter> {
  return Object.fromEntries(
    Object.entries(module.parameters).map(([name, parameter]): [string, ExplainedParameter] => {
      const at = place(module, ['parameters', name]);
      const given = Object.hasOwn(layers, name) ? (layers[name] ?? []) : [];
      const { combined } = parameterValue(name, parameter, given, agent);
      const { from, name: by } = combined?.layers[0] ?? { from: 'default' as const, name: null };
      const origin = from === 'default' || from === 'variant' ? from : 'given';
      return [name, { value: combined?.value ?? null, origin, from, name: by, place: at }];
    }),
  );
}
