import type { Fault } from '../../errors.ts';
import type { Json, ModuleDocument } from '../document.ts';
import { furtherFiles, isPartOfFile, isValueOfFile, wholeFiles, whyNotBoth, whyNotTwice } from '../file-parts.ts';
import { type Instance, sensitiveFields } from '../instances.ts';
import { confirms } from '../kinds/services.ts';
import type { Trigger } from '../kinds.ts';
import { quoted } from '../nearest.ts';
import type { UnfilledResource } from '../secrets.ts';
import { pointer } from '../source/json-pointer.ts';
import type { Path } from '../source/tree.ts';
import { cannotBe, triggerFor } from './notifications.ts';
import { References } from './references.ts';
import { differenceBetween, type Fields } from './same-resource.ts';

/** A resource of the desired state. */
export interface Merged {
  resource: UnfilledResource;
  /** Its declarations, in order. */
  readonly declarations: { readonly resource: UnfilledResource; readonly path: Path }[];
}

/** The resources of one module. */
interface Part {
  readonly module: ModuleDocument;
  readonly instances: readonly Instance[];
}

export interface Merge {
  merged: Merged[];
  /** References to resources that do not exist. */
  unresolved: Fault[];
  conflicts: Fault[];
}

/**
 * Merges the resources from modules. Two modules may declare the same resource, and one module may declare it twice:
 * fields that only one of them sets are combined, as are dependencies and triggers. Different values of a field
 * conflict.
 */
export function mergeInstances(parts: readonly Part[]): Merge {
  const budget = new ReferenceBudget();
  const merged: Merged[] = [];
  const byKey = new Map<string, Merged>();
  const conflicts: Fault[] = [];
  const references = new References(parts);
  for (const { module, instances } of parts) {
    const keysOf = references.from(module);
    for (const instance of instances) {
      const declaration = { resource: withKeys(instance, keysOf), path: instance.path };
      for (const list of referenceLists) budget.spend(declaration.resource[list]);
      if (budget.exceeded) return tooManyReferences(module, instance.path);
      const earlier = byKey.get(instance.key);
      if (earlier === undefined) {
        const entry = { resource: declaration.resource, declarations: [declaration] };
        byKey.set(instance.key, entry);
        merged.push(entry);
      } else {
        const conflict = repeats(module, earlier, declaration) ?? unite(earlier, declaration);
        if (conflict !== null) conflicts.push(conflict);
      }
    }
  }
  const notifying = notify(parts, references, byKey, budget);
  if (notifying !== null) return tooManyReferences(notifying.module, notifying.path);
  for (const each of merged) each.resource = confirmed(each.resource, byKey);
  const immediate = orderImmediate(merged, byKey, budget);
  if (immediate !== null) return tooManyReferences(immediate.module, immediate.path);
  const further = declarersOfFurtherFiles(merged);
  conflicts.push(...filesDeclaredTwice(merged, byKey, further));
  conflicts.push(...partsOfWholeFiles(merged, byKey, further), ...valuesWithinOthers(merged));
  return { merged, unresolved: references.faults, conflicts };
}

/**
 * Maximum total length of the keys in all dependencies and triggers, in characters. The dependencies between two long
 * lists multiply. A desired state with longer keys in total is too large to store as JSON.
 */
const maximumReferences = 48 * 1024 * 1024;

/** Limits the total length of the keys in dependencies and triggers. */
class ReferenceBudget {
  #left = maximumReferences;

  /** @param times number of times that the keys are listed */
  spend(keys: readonly string[], times = 1): void {
    // JSON adds two quotes and a comma to each key.
    for (const key of keys) this.#left -= (key.length + 3) * times;
  }

  get exceeded(): boolean {
    return this.#left < 0;
  }
}

interface Place {
  readonly module: Pick<ModuleDocument, 'name'>;
  readonly path: Path;
}

function tooManyReferences({ name }: Place['module'], path: Path): Merge {
  const message = `module ${quoted(name)}: the dependencies and triggers of the desired set exceed 48 MiB: shorten the lists, or depend on a resource without for_each`;
  return { merged: [], unresolved: [{ path: pointer(['modules', name, ...path]), message }], conflicts: [] };
}

type Declaration = Merged['declarations'][number];

/**
 * Returns the conflict if two elements of a list declare the same resource. Nested loops may repeat a resource, because
 * their lists can share values.
 */
function repeats(module: ModuleDocument, earlier: Merged, later: Declaration): Fault | null {
  const [, index] = later.path;
  if (typeof index !== 'number' || module.resources[index]?.for_each?.kind === 'nested') return null;
  const same = earlier.declarations.find(
    ({ resource, path }) => resource.module === later.resource.module && path[1] === index,
  );
  return same === undefined ? null : conflict(same, later, null);
}

/**
 * Adds a declaration to a resource.
 * @returns the conflict if they differ, in which case the resource does not change
 */
function unite(earlier: Merged, later: Declaration): Fault | null {
  const { resource } = later;
  const difference = differenceBetween(comparable(earlier.resource), comparable(resource));
  if (difference !== null) {
    const { fields, reason } = difference;
    const giver = earlier.declarations.find(({ resource: { body } }) =>
      fields.some((field) => Object.hasOwn(body, field)),
    );
    return conflict(giver ?? (earlier.declarations[0] as Declaration), later, reason);
  }
  earlier.declarations.push(later);
  earlier.resource = united(earlier.resource, resource);
  return null;
}

const comparable = (resource: UnfilledResource) => ({
  type: resource.type,
  fields: fieldsOf(resource),
  onlyIf: resource.only_if,
});

/** Returns the values of all fields, including secrets, and the hash of the source. */
function fieldsOf({ body, deferred, source }: UnfilledResource): Fields {
  if (deferred.length === 0 && source === undefined) return body;
  const fields: Record<string, unknown> = { ...body };
  if (source !== undefined) fields.source = source.sha256;
  for (const [name, texts] of Map.groupBy(deferred, ({ path }) => String(path[0]))) fields[name] = [body[name], texts];
  return fields;
}

function united(one: UnfilledResource, other: UnfilledResource): UnfilledResource {
  const added = Object.keys(other.body).filter((name) => !Object.hasOwn(one.body, name));
  // Excludes the resource itself, because one of its declarations may depend on another.
  const union = (list: 'depends_on' | Trigger): string[] =>
    [...new Set([...one[list], ...other[list]])].filter((key) => key !== one.key);
  const immediate_on = [...new Set([...(one.immediate_on ?? []), ...(other.immediate_on ?? [])])];
  const lists = {
    depends_on: union('depends_on'),
    reload_on: union('reload_on'),
    restart_on: union('restart_on'),
    rerun_on: union('rerun_on'),
    ...(immediate_on.length === 0 ? {} : { immediate_on }),
  };
  if (added.length === 0) return { ...one, ...lists };
  const body = { ...one.body, ...Object.fromEntries(added.map((name) => [name, other.body[name] as Json])) };
  const deferred = [...one.deferred, ...other.deferred.filter(({ path }) => added.includes(String(path[0])))];
  const source = one.source ?? other.source;
  return {
    ...{ ...one, body, deferred, sensitive_fields: sensitiveFields(one.type, body, deferred), ...lists },
    ...(source === undefined ? {} : { source }),
  };
}

const triggers = ['reload_on', 'restart_on', 'rerun_on'] as const;
const referenceLists = ['depends_on', ...triggers] as const;

/** Returns the resource of an instance with keys in place of references. */
function withKeys(
  instance: Instance,
  keysOf: (references: readonly string[], at: Path | null) => string[],
): UnfilledResource {
  const { path, declaredId: _id, dependsOnIds, triggerIds, immediateIds, notifications: _, ...rest } = instance;
  const keysOfTrigger = (trigger: Trigger): string[] => {
    const ids = triggerIds[trigger];
    return ids === undefined ? [] : keysOf(ids, [...path, trigger]);
  };
  const [reload_on, restart_on, rerun_on] = [
    keysOfTrigger('reload_on'),
    keysOfTrigger('restart_on'),
    keysOfTrigger('rerun_on'),
  ];
  const depends_on = dependsOnIds.length === 0 ? [] : keysOf(dependsOnIds, [...path.slice(0, 2), 'depends_on']);
  const triggering = reload_on.length + restart_on.length + rerun_on.length;
  // The trigger already reports a missing resource.
  const immediate_on = keysOf(immediateIds, null);
  return {
    ...rest,
    ...(immediate_on.length === 0 ? {} : { immediate_on }),
    reload_on,
    restart_on,
    rerun_on,
    depends_on: triggering === 0 ? depends_on : [...new Set([...depends_on, ...reload_on, ...restart_on, ...rerun_on])],
  };
}

/**
 * Adds each resource to the triggers of the resources that it notifies.
 * @returns the place at which the budget is exceeded, or null
 */
function notify(
  parts: readonly Part[],
  references: References,
  byKey: ReadonlyMap<string, Merged>,
  budget: ReferenceBudget,
): Place | null {
  const added = new Map<Merged, Map<Trigger | 'immediate_on', Set<string>>>();
  for (const { module, instances } of parts) {
    for (const instance of instances) {
      for (const [index, { trigger, id, immediately }] of instance.notifications.entries()) {
        const at = [...instance.path.slice(0, 2), 'notify', index, trigger.slice(0, -'_on'.length)];
        for (const key of references.from(module)([id], at)) {
          const target = byKey.get(key);
          if (target === undefined) continue;
          const { type, identity } = target.resource;
          const list = triggerFor(type, trigger);
          if (list === null) {
            references.fault(module, at, `${type} ${identity} ${cannotBe[trigger]}`);
            continue;
          }
          const lists = added.get(target) ?? new Map<Trigger | 'immediate_on', Set<string>>();
          added.set(target, lists.set(list, (lists.get(list) ?? new Set()).add(instance.key)));
          if (immediately) lists.set('immediate_on', (lists.get('immediate_on') ?? new Set()).add(instance.key));
          // Counts the key twice, because it is in the trigger and in `depends_on`.
          budget.spend([instance.key], 2);
          if (budget.exceeded) return { module, path: at };
        }
      }
    }
  }
  for (const [target, lists] of added)
    for (const [list, keys] of lists) {
      const { resource } = target;
      const union = (before: readonly string[]) => [...new Set([...before, ...keys])];
      target.resource = { ...resource, [list]: union(resource[list] ?? []), depends_on: union(resource.depends_on) };
    }
  return null;
}

/**
 * Makes a checked service react immediately to the files that trigger it, so that each of them can be restored. Other
 * triggers, such as packages, are not restored. If the service reacted to them before its configuration is written, the
 * check could fail and prevent the configuration from being written.
 */
function confirmed(resource: UnfilledResource, byKey: ReadonlyMap<string, Merged>): UnfilledResource {
  if (!confirms(resource.body)) return resource;
  const files = [...resource.reload_on, ...resource.restart_on].filter((key) => isFile(byKey.get(key)?.resource));
  const immediate = [...new Set([...(resource.immediate_on ?? []), ...files])];
  return immediate.length === 0 ? resource : { ...resource, immediate_on: immediate };
}

const isFile = (resource: UnfilledResource | undefined): boolean =>
  resource !== undefined && (resource.type === 'file-unix' || isPartOfFile(resource));

/**
 * Moves the dependencies of a service before the resources that trigger it immediately. Other triggers of the service
 * may come later.
 * @returns the place at which the budget is exceeded, or null
 */
function orderImmediate(
  merged: readonly Merged[],
  byKey: ReadonlyMap<string, Merged>,
  budget: ReferenceBudget,
): Place | null {
  for (const { resource: service, declarations } of merged) {
    if (service.immediate_on === undefined) continue;
    const triggering = new Set(triggers.flatMap((trigger) => service[trigger]));
    const before = service.depends_on.filter((key) => !triggering.has(key));
    for (const key of service.immediate_on) {
      budget.spend(before);
      if (budget.exceeded) return { module: { name: service.module }, path: declarations[0]?.path ?? [] };
      const source = byKey.get(key);
      if (source !== undefined)
        source.resource = {
          ...source.resource,
          depends_on: [...new Set([...source.resource.depends_on, ...before])].filter((each) => each !== key),
        };
    }
  }
  return null;
}

/**
 * Maps the key of each file that resources declare besides their main objects to the first resource that declares it.
 */
function declarersOfFurtherFiles(merged: readonly Merged[]): Map<string, Merged> {
  const declarers = new Map<string, Merged>();
  for (const each of merged)
    for (const file of furtherFiles(each.resource))
      if (!declarers.has(`path:${file}`)) declarers.set(`path:${file}`, each);
  return declarers;
}

/** Finds files that one resource declares besides its main object, and that another resource declares too. */
const filesDeclaredTwice = (
  merged: readonly Merged[],
  byKey: ReadonlyMap<string, Merged>,
  further: ReadonlyMap<string, Merged>,
): Fault[] =>
  merged.flatMap((each) =>
    furtherFiles(each.resource).flatMap((file): Fault[] => {
      const other = byKey.get(`path:${file}`) ?? further.get(`path:${file}`);
      if (other === undefined || other === each) return [];
      const [[one], [two]] = [each.declarations, other.declarations] as [[Declaration], [Declaration]];
      const [label, otherLabel] = [each, other].map(({ resource }) => `${resource.type} ${resource.identity}`);
      const message = `${label} in ${locationOf(one)} and ${otherLabel} in ${locationOf(two)} ${whyNotTwice(file)}`;
      return [{ path: pointer(['modules', each.resource.module, ...one.path]), message }];
    }),
  );

function partsOfWholeFiles(
  merged: readonly Merged[],
  byKey: ReadonlyMap<string, Merged>,
  further: ReadonlyMap<string, Merged>,
): Fault[] {
  return merged.flatMap(({ resource, declarations }) => {
    if (!isPartOfFile(resource)) return [];
    const path = String(resource.body.path);
    const takes = (whole: UnfilledResource): boolean => wholeFiles(whole).includes(path);
    const whole = byKey.get(`path:${path}`) ?? further.get(`path:${path}`);
    if (whole === undefined || !takes(whole.resource)) return [];
    const [part] = declarations as [Declaration];
    const taker = whole.declarations.find((each) => takes(each.resource)) ?? whole.declarations[0];
    const message = `${resource.type} ${resource.identity} in ${locationOf(part)} is a part of a file, and ${locationOf(taker as Declaration)} ${whyNotBoth(whole.resource.body)}`;
    return [{ path: pointer(['modules', resource.module, ...part.path]), message }];
  });
}

/**
 * Finds declared values in structured files that are part of another declared value, because each resource would undo
 * the other.
 */
function valuesWithinOthers(merged: readonly Merged[]): Fault[] {
  const byPlace = new Map<string, Merged>();
  const placeOf = ({ type, body }: UnfilledResource, pointer: string): string =>
    `${type} ${String(body.path)} ${pointer}`;
  const structured = merged.filter(({ resource }) => isValueOfFile(resource));
  for (const each of structured) byPlace.set(placeOf(each.resource, String(each.resource.body.pointer)), each);
  return structured.flatMap(({ resource, declarations }): Fault[] => {
    const keys = String(resource.body.pointer).split('/');
    for (let length = keys.length - 1; length > 1; length--) {
      const outer = byPlace.get(placeOf(resource, keys.slice(0, length).join('/')));
      if (outer === undefined) continue;
      const [[part], [taker]] = [declarations, outer.declarations] as [[Declaration], [Declaration]];
      const message = `${resource.type} ${resource.identity} in ${locationOf(part)} is within the value that ${locationOf(taker)} declares, so each resource would undo the other at every apply: keep one of them`;
      return [{ path: pointer(['modules', resource.module, ...part.path]), message }];
    }
    return [];
  });
}

const locationOf = ({ resource, path }: Declaration): string =>
  `module "${resource.module}" (${resource.id === null ? pointer(path) : `id "${resource.id}"`})`;

/** @param reason null if elements of one list declare the resource */
function conflict(earlier: Declaration, later: Declaration, reason: string | null): Fault {
  const { type, identity, module } = later.resource;
  const places = `${locationOf(earlier)} and ${locationOf(later)}`;
  return {
    path: pointer(['modules', module, ...later.path]),
    message:
      reason === null
        ? `${type} ${identity} is declared twice in ${places}: keep one of them`
        : `${type} ${identity} is declared differently in ${places}: ${reason}; keep one of them, or make them agree`,
  };
}
