import type { Fault } from '../errors.ts';
import { bodyFaults, evaluateBody } from './body.ts';
import { type AgentFacts, matches } from './conditions.ts';
import type { Json, ModuleDocument } from './document.ts';
import type { Scope } from './expression/evaluate.ts';
import { isPartOfFile, takesWholeFile, whyNotBoth } from './file-parts.ts';
import { type Instance, instancesOf, ResolutionBudget } from './instances.ts';
import type { Trigger } from './kinds.ts';
import { stableOrder } from './order.ts';
import { secretNames, type UnfilledResource, type UnfilledVerification } from './secrets.ts';
import { type Path, pointer } from './source/tree.ts';
import { verificationKind } from './verification.ts';

export interface ResolutionRequest {
  /** Modules in the order of the desired state. Repeated names are skipped. */
  readonly modules: readonly ModuleDocument[];
  /** `{module: {name: value}}` */
  readonly parameters?: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly agent: AgentFacts;
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
    }
  | { ok: false; code: 'module_unresolved' | 'module_conflict'; faults: Fault[] };

const maximumFaults = 500;

/**
 * Resolves an agent's desired resources from its desired modules, as the first phase of resolution. Lists secrets but
 * does not insert them, so the result may be stored. `fillSecrets` inserts them at dispatch. A pure function.
 *
 * @returns the resources in execution order, or the errors; the path of an error is a JSON pointer into `{modules:
 *   {<name>: <module>}, parameters: {…}}`
 */
export function resolveDesiredSet({ modules, parameters = {}, agent }: ResolutionRequest): Resolution {
  const unresolved: Fault[] = [];
  const distinct = [...new Map(modules.map((module) => [module.name, module])).values()];
  for (const name of Object.keys(parameters)) {
    if (distinct.some((module) => module.name === name)) continue;
    unresolved.push({
      path: pointer(['parameters', name]),
      message: `there is no module "${name}" in the desired set`,
    });
  }
  const budget = new ResolutionBudget();
  const parts = distinct.map((module) => {
    const given = Object.hasOwn(parameters, module.name) ? (parameters[module.name] ?? {}) : {};
    const { instances, faults, scope } = instancesOf(module, agent, given, budget);
    for (const { path, message } of faults) unresolved.push(moduleFault(module.name, path, message));
    return { module, instances, verify: verificationsOf(module, scope, unresolved) };
  });
  if (unresolved.length > 0)
    return { ok: false, code: 'module_unresolved', faults: unresolved.slice(0, maximumFaults) };

  const { merged, conflicts } = mergeInstances(parts.map(({ instances }) => instances));
  if (conflicts.length > 0) return { ok: false, code: 'module_conflict', faults: conflicts.slice(0, maximumFaults) };

  const indexOf = new Map(merged.map(({ resource }, index) => [resource.key, index]));
  const sorted = stableOrder(
    merged.map(({ resource }) => resource.depends_on.map((key) => indexOf.get(key) as number)),
  );
  if (!sorted.ok) {
    const members = [...sorted.cycle, sorted.cycle[0] as number].map((index) => (merged[index] as Merged).resource);
    const names = members.map((resource) => `${resource.module}/${resource.id ?? resource.identity}`);
    const first = merged[sorted.cycle[0] as number] as Merged;
    const message = `dependency cycle: ${names.join(' -> ')}`;
    return { ok: false, code: 'module_unresolved', faults: [moduleFault(first.resource.module, first.path, message)] };
  }
  const resources = sorted.order.map((index) => (merged[index] as Merged).resource);
  const verify = parts.flatMap((part) => part.verify);
  const { used, required } = secretNames([...resources, ...verify]);
  return { ok: true, resources, verify, secrets: used, required_secrets: required };
}

const moduleFault = (module: string, path: Path, message: string): Fault => ({
  path: pointer(['modules', module, ...path]),
  message: `module "${module}": ${message}`,
});

function verificationsOf(module: ModuleDocument, scope: Scope, faults: Fault[]): UnfilledVerification[] {
  return module.verify.flatMap(({ when, type, body: declared }, index) => {
    if (!matches(when, scope.agent, scope.parameters)) return [];
    const kind = verificationKind(type);
    const evaluated = evaluateBody(declared, kind, scope);
    const found = evaluated.faults.length > 0 ? evaluated.faults : bodyFaults(evaluated, kind);
    for (const { path, message } of found) {
      const inside = type === 'command' ? path : [type, ...path];
      faults.push(moduleFault(module.name, ['verify', index, ...inside], message));
    }
    return { module: module.name, type, body: evaluated.body, deferred: evaluated.deferred };
  });
}

interface Merged {
  readonly resource: UnfilledResource;
  readonly path: Path;
}

/**
 * Merges the resources from modules. Equal declarations of a key in two modules become one, and different declarations
 * conflict.
 */
function mergeInstances(modules: readonly (readonly Instance[])[]): { merged: Merged[]; conflicts: Fault[] } {
  const merged: Merged[] = [];
  const byKey = new Map<string, Merged>();
  const conflicts: Fault[] = [];
  for (const instances of modules) {
    const keysOf = new Map<string, string[]>();
    for (const { declaredId, key } of instances) {
      if (declaredId === null) continue;
      const keys = keysOf.get(declaredId);
      if (keys === undefined) keysOf.set(declaredId, [key]);
      else keys.push(key);
    }
    for (const instance of instances) {
      const { path } = instance;
      const resource = withKeys(instance, keysOf);
      const earlier = byKey.get(resource.key);
      if (earlier === undefined) {
        const entry = { resource, path };
        byKey.set(resource.key, entry);
        merged.push(entry);
      } else if (earlier.resource.module !== resource.module && isSame(earlier.resource, resource)) {
        const depends = new Set([...earlier.resource.depends_on, ...resource.depends_on]);
        earlier.resource.depends_on = [...depends];
      } else {
        conflicts.push(conflict(earlier, { resource, path }));
      }
    }
  }
  conflicts.push(...partsOfWholeFiles(merged, byKey));
  return { merged, conflicts };
}

function partsOfWholeFiles(merged: readonly Merged[], byKey: ReadonlyMap<string, Merged>): Fault[] {
  return merged.flatMap(({ resource, path }) => {
    const whole = isPartOfFile(resource) ? byKey.get(`path:${String(resource.body.path)}`) : undefined;
    if (whole === undefined || !takesWholeFile(whole.resource)) return [];
    const { type, module, identity } = resource;
    const message = `${type} ${identity} in ${locationOf({ resource, path })} is a part of a file, and ${locationOf(whole)} ${whyNotBoth(whole.resource.body)}`;
    return [{ path: pointer(['modules', module, ...path]), message }];
  });
}

function withKeys(instance: Instance, keysOf: ReadonlyMap<string, readonly string[]>): UnfilledResource {
  const { path: _path, declaredId: _declaredId, dependsOnIds, triggerIds, ...rest } = instance;
  // A dependency on a resource that does not apply to this agent is ignored.
  const keys = (ids: readonly string[]): string[] => [...new Set(ids.flatMap((id) => keysOf.get(id) ?? []))];
  const triggers = (trigger: Trigger): string[] => keys(triggerIds[trigger] ?? []);
  const resource = {
    ...rest,
    reload_on: triggers('reload_on'),
    restart_on: triggers('restart_on'),
    rerun_on: triggers('rerun_on'),
  };
  const { reload_on, restart_on, rerun_on } = resource;
  return { ...resource, depends_on: [...new Set([...keys(dependsOnIds), ...reload_on, ...restart_on, ...rerun_on])] };
}

const isSame = (one: UnfilledResource, other: UnfilledResource): boolean => declared(one) === declared(other);

/** Returns a text that is the same for equal declarations. The order of triggers does not matter. */
const declared = ({ type, body, deferred, only_if, reload_on, restart_on, rerun_on }: UnfilledResource): string =>
  canonical([type, body, deferred, only_if, ...[reload_on, restart_on, rerun_on].map((keys) => [...keys].sort())]);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );

const locationOf = ({ resource, path }: Merged): string =>
  `module "${resource.module}" (${resource.id === null ? pointer(path) : `id "${resource.id}"`})`;

function conflict(earlier: Merged, later: Merged): Fault {
  const { type, identity, module } = later.resource;
  const how = earlier.resource.module === module ? 'twice' : 'differently';
  return {
    path: pointer(['modules', module, ...later.path]),
    message: `${type} ${identity} is declared ${how} in ${locationOf(earlier)} and ${locationOf(later)}: keep one of them`,
  };
}
