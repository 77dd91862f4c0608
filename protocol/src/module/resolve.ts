import type { Fault } from '../errors.ts';
import { bodyFaults, evaluateBody } from './body.ts';
import type { LookupValues } from './composition/lookups.ts';
import { type Merged, mergeInstances } from './composition/merge.ts';
import { withRequiredLayers } from './composition/requires.ts';
import { type AgentFacts, matches } from './conditions.ts';
import type { Json, ModuleDocument } from './document.ts';
import { unsetParameter } from './expression/references.ts';
import { reasonOrValue } from './expression/values.ts';
import type { Scope } from './expression/variables.ts';
import { charactersOf, instancesOf, ResolutionBudget } from './instances.ts';
import { cycleText, stableOrder } from './order.ts';
import { conflictText, type Layers } from './parameters/layers.ts';
import { givenLayers } from './parameters.ts';
import { secretNames, type UnfilledResource, type UnfilledVerification } from './secrets.ts';
import { pointer } from './source/json-pointer.ts';
import { located } from './source/places.ts';
import type { Path } from './source/tree.ts';
import { verificationKind } from './verification.ts';

export interface ResolutionRequest {
  /** Modules in the order of the desired state. Repeated names are skipped. */
  readonly modules: readonly ModuleDocument[];
  /** `{module: {name: value}}`; or with the layers of each value, as assignments define them. */
  readonly parameters?: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly layers?: Layers;
  readonly agent: AgentFacts;
  /** Lookup values, by module and name. */
  readonly lookups?: Readonly<Record<string, LookupValues>>;
  /** Whether to return `declarations`. */
  readonly withDeclarations?: boolean;
}

export type Resolution =
  | {
      ok: true;
      /** Resources in execution order. */
      resources: UnfilledResource[];
      verify: UnfilledVerification[];
      /** Names of all secrets that are used, sorted. */
      secrets: string[];
      /** Names of secrets without a default. Dispatch fails if one of them is missing. */
      required_secrets: string[];
      /** The lookups whose conditions hold, as `module:name`. Absent if there are none. */
      lookups?: string[];
      /** For each of `resources`, the declarations that it consists of. Absent if not requested. */
      declarations?: Merged['declarations'][];
    }
  | { ok: false; code: 'module_unresolved' | 'module_conflict'; faults: Fault[] };

const maximumFaults = 500;

type Refusal = Extract<Resolution, { ok: false }>;

/** Errors with the positions in the modules' sources. */
const refused = (code: Refusal['code'], faults: readonly Fault[], modules: readonly ModuleDocument[]): Refusal => ({
  ok: false,
  code,
  faults: located(faults.slice(0, maximumFaults), modules),
});

/**
 * Resolves an agent's desired resources from its desired modules, as the first phase of resolution. Lists secrets but
 * does not insert them, so the result may be stored. `fillSecrets` inserts them at dispatch. A pure function.
 *
 * @returns the resources in execution order, or the errors; the path of an error is a JSON pointer into `{modules:
 *   {<name>: <module>}, parameters: {…}}`
 */
export function resolveDesiredSet(request: ResolutionRequest): Resolution {
  const { modules, lookups = {}, agent, withDeclarations = false } = request;
  const unresolved: Fault[] = [];
  const contradictory: Fault[] = [];
  const distinct = [...new Map(modules.map((module) => [module.name, module])).values()];
  const layers = layersOf(request, distinct);
  for (const name of Object.keys(layers)) {
    if (distinct.some((module) => module.name === name)) continue;
    unresolved.push({
      path: pointer(['parameters', name]),
      message: `there is no module "${name}" in the desired set`,
    });
  }
  const budget = new ResolutionBudget();
  const parts = distinct.map((module) => {
    const given = Object.hasOwn(layers, module.name) ? (layers[module.name] ?? {}) : {};
    const looked = Object.hasOwn(lookups, module.name) ? (lookups[module.name] ?? {}) : {};
    const { instances, faults, scope, conflicts, lookups: held } = instancesOf(module, agent, given, looked, budget);
    for (const { name, conflict } of conflicts)
      contradictory.push({
        path: pointer(['parameters', module.name, name, ...conflict.path]),
        message: conflictText(module.name, name, conflict),
      });
    const found = faults.map(({ path, message }) => moduleFault(module.name, path, message));
    const verify = verificationsOf(module, scope, budget, found);
    // A parameter with an invalid value already has an error. Missing values in expressions are only a consequence.
    const follow = faults.flatMap(({ path: [root, name] }) =>
      root === 'parameters' ? [unsetParameter(String(name))] : [],
    );
    unresolved.push(...found.filter(({ message }) => !follow.some((text) => message.includes(text))));
    return { module, instances, verify, lookups: held.map((name) => `${module.name}:${name}`) };
  });
  if (contradictory.length > 0) return refused('module_conflict', contradictory, distinct);
  if (unresolved.length > 0) return refused('module_unresolved', unresolved, distinct);

  const { merged, unresolved: missing, conflicts } = mergeInstances(parts);
  if (missing.length > 0) return refused('module_unresolved', missing, distinct);
  if (conflicts.length > 0) return refused('module_conflict', conflicts, distinct);

  const indexOf = new Map(merged.map(({ resource }, index) => [resource.key, index]));
  const sorted = stableOrder(
    merged.map(({ resource }) => resource.depends_on.map((key) => indexOf.get(key) as number)),
  );
  if (!sorted.ok) {
    const members = [...sorted.cycle, sorted.cycle[0] as number].map((index) => (merged[index] as Merged).resource);
    const nameOf = (resource: UnfilledResource) => `${resource.module}/${resource.id ?? resource.identity}`;
    // The dependencies of a service precede the resources that trigger it immediately.
    const service = merged.find(({ resource }) => members.some(({ key }) => resource.immediate_on?.includes(key)));
    const why = service === undefined ? '' : `; ${nameOf(service.resource)} reacts immediately to one of them`;
    const names = members.map(nameOf);
    const { resource, declarations } = merged[sorted.cycle[0] as number] as Merged;
    const message = cycleText(names, why);
    const path = declarations[0]?.path ?? [];
    return refused('module_unresolved', [moduleFault(resource.module, path, message)], distinct);
  }
  const resources = sorted.order.map((index) => (merged[index] as Merged).resource);
  const verify = parts.flatMap((part) => part.verify);
  const { used: secrets, required } = secretNames([...resources, ...verify]);
  const used = parts.flatMap((part) => part.lookups);
  const declarations = sorted.order.map((index) => (merged[index] as Merged).declarations);
  return {
    ok: true,
    resources,
    verify,
    secrets,
    required_secrets: required,
    ...(used.length === 0 ? {} : { lookups: used }),
    ...(withDeclarations ? { declarations } : {}),
  };
}

/** Returns the layers of all parameters, including those that modules set for the modules they require. */
export const layersOf = (
  { parameters = {}, layers }: Pick<ResolutionRequest, 'parameters' | 'layers'>,
  modules: readonly ModuleDocument[],
): Layers =>
  withRequiredLayers(
    modules,
    layers ?? Object.fromEntries(Object.entries(parameters).map(([module, values]) => [module, givenLayers(values)])),
  );

const moduleFault = (module: string, path: Path, message: string): Fault => ({
  path: pointer(['modules', module, ...path]),
  message: `module "${module}": ${message}`,
});

function verificationsOf(
  module: ModuleDocument,
  scope: Scope,
  budget: ResolutionBudget,
  faults: Fault[],
): UnfilledVerification[] {
  return module.verify.flatMap(({ when, type, body: declared }, index) => {
    const holds = reasonOrValue(() => matches(when, scope.agent, scope));
    if (typeof holds === 'string') faults.push(moduleFault(module.name, ['verify', index, 'when'], holds));
    if (holds !== true) return [];
    const kind = verificationKind(type);
    const evaluated = evaluateBody(declared, kind, scope);
    const found = evaluated.faults.length > 0 ? evaluated.faults : bodyFaults(evaluated, kind);
    for (const { path, message } of found) {
      const inside = type === 'command' ? path : [type, ...path];
      faults.push(moduleFault(module.name, ['verify', index, ...inside], message));
    }
    const { body, deferred } = evaluated;
    const exceeded = budget.spend(charactersOf([body, deferred]), 0);
    if (exceeded !== undefined) {
      faults.push(moduleFault(module.name, ['verify', index], exceeded));
      return [];
    }
    return { module: module.name, type, body, deferred };
  });
}
