import type { Fault } from '../errors.ts';
import { triggerFor } from './composition/notifications.ts';
import { readingsOf } from './composition/readings.ts';
import type { ModuleDocument, ResourceDeclaration } from './document.ts';
import { identify, type Trigger } from './kinds.ts';
import { cycleText, stableOrder } from './order.ts';
import type { UnfilledResource } from './secrets.ts';
import { pointer } from './source/json-pointer.ts';

/** The execution order of the resources in modules, with their dependencies. */
export interface ResourceOrder {
  modules: string[];
  resources: OrderedResource[];
}

/** A resource with the positions of the resources on which it depends. */
interface OrderedResource {
  module: string;
  id: string | null;
  /** Null if the variants have different values. */
  type: string | null;
  /** Null if the variants have different values. */
  identity: string | null;
  depends_on: number[];
  reload_on: number[];
  restart_on: number[];
  rerun_on: number[];
}

/** Returns the order of resolved resources. */
export function resolvedOrder(
  modules: readonly ModuleDocument[],
  resources: readonly UnfilledResource[],
): ResourceOrder {
  const positionOf = new Map(resources.map(({ key }, position) => [key, position]));
  const positions = (keys: readonly string[]) => keys.flatMap((key) => positionOf.get(key) ?? []).sort((a, b) => a - b);
  return {
    modules: modules.map(({ name }) => name),
    resources: resources.map((resource) => ({
      module: resource.module,
      id: resource.id,
      type: resource.type,
      identity: resource.identity,
      depends_on: positions(resource.depends_on),
      reload_on: positions(resource.reload_on),
      restart_on: positions(resource.restart_on),
      rerun_on: positions(resource.rerun_on),
    })),
  };
}

export type DeclaredOrder = { ok: true; order: ResourceOrder } | { ok: false; faults: Fault[] };

/**
 * Orders the resources of modules as written, without an agent and without evaluating expressions. Ignores references
 * to resources that are not in the modules.
 * @param modules parsed without errors
 * @returns the order, or the cycle across modules
 */
export function declaredOrder(modules: readonly ModuleDocument[]): DeclaredOrder {
  const declared = modules.flatMap((module) => module.resources.map((resource) => ({ module: module.name, resource })));
  const indexOf = new Map(
    declared.flatMap(({ module, resource }, index) =>
      resource.id === null ? [] : [[JSON.stringify([module, resource.id]), index] as const],
    ),
  );
  const find = (module: string, reference: string): number[] => {
    const readings = readingsOf(reference).map((reading) => JSON.stringify([reading.module ?? module, reading.id]));
    return readings.flatMap((key) => indexOf.get(key) ?? []).slice(0, 1);
  };
  const notified = declared.map((): Record<Trigger, number[]> => ({ reload_on: [], restart_on: [], rerun_on: [] }));
  for (const [index, { module, resource }] of declared.entries())
    for (const { trigger, id } of resource.notify)
      for (const target of find(module, id)) {
        const [type] = (declared[target] as (typeof declared)[number]).resource.variants.flatMap(
          ({ resource }) => resource?.type ?? [],
        );
        notified[target]?.[(type && triggerFor(type, trigger)) ?? trigger].push(index);
      }
  const edges = declared.map(({ module, resource }, position) => {
    const indices = (references: readonly string[]) => [
      ...new Set(references.flatMap((reference) => find(module, reference))),
    ];
    const [reload_on, restart_on, rerun_on] = (['reload_on', 'restart_on', 'rerun_on'] as const).map((trigger) => [
      ...new Set([...indices(triggeredBy(resource, trigger)), ...(notified[position]?.[trigger] ?? [])]),
    ]) as [number[], number[], number[]];
    const depends_on = [...new Set([...indices(resource.depends_on), ...reload_on, ...restart_on, ...rerun_on])];
    return { depends_on, reload_on, restart_on, rerun_on };
  });
  const sorted = stableOrder(edges.map(({ depends_on }) => depends_on));
  if (!sorted.ok) {
    const members = [...sorted.cycle, sorted.cycle[0] as number].map(
      (index) => declared[index] as (typeof declared)[number],
    );
    const names = members.map(({ module, resource }) => `${module}/${resource.id ?? 'a resource without an id'}`);
    const path = pointer(['modules', members[0]?.module ?? '']);
    return {
      ok: false,
      faults: [{ path, message: cycleText(names) }],
    };
  }
  const positionOf = new Map(sorted.order.map((index, position) => [index, position]));
  const positions = (indices: readonly number[]) =>
    indices.map((index) => positionOf.get(index) as number).sort((a, b) => a - b);
  const order = {
    modules: modules.map(({ name }) => name),
    resources: sorted.order.map((index): OrderedResource => {
      const { module, resource } = declared[index] as (typeof declared)[number];
      const edge = edges[index] as (typeof edges)[number];
      return {
        module,
        id: resource.id,
        ...typeAndIdentity(resource),
        depends_on: positions(edge.depends_on),
        reload_on: positions(edge.reload_on),
        restart_on: positions(edge.restart_on),
        rerun_on: positions(edge.rerun_on),
      };
    }),
  };
  return { ok: true, order };
}

const triggeredBy = ({ variants }: ResourceDeclaration, trigger: Trigger): string[] =>
  variants.flatMap(({ resource }) => resource?.triggers[trigger] ?? []);

/** Returns the type and identity of a resource. A field is null if the variants differ in it. */
function typeAndIdentity({ variants }: ResourceDeclaration): Pick<OrderedResource, 'type' | 'identity'> {
  const only = <T>(values: readonly T[]): T | null => (new Set(values).size === 1 ? (values[0] as T) : null);
  const resources = variants.flatMap(({ resource }) => resource ?? []);
  return {
    type: only(resources.map(({ type }) => type)),
    identity: only(resources.map(({ type, body }) => identify(type, body).identity)),
  };
}
