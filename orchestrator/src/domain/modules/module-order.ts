import { MusterError } from '@muster/protocol';
import type { ModuleOrder } from '@muster/protocol/http';
import {
  type AgentFacts,
  identify,
  type Json,
  type ModuleDocument,
  type ResourceDeclaration,
  resolveDesiredSet,
  stableOrder,
  type Trigger,
  type UnfilledResource,
} from '@muster/protocol/module';
import { fromJson } from '../../store/json-text.ts';
import { modulesByName } from '../../store/queries/modules.ts';
import { requireAgent } from '../agents/agents.ts';
import { requireTags } from '../agents/tags.ts';
import type { Context } from '../shared/context.ts';

/** Computes the order of the resources in modules, with their dependencies. */

export interface OrderRequest {
  modules: readonly string[];
  /** Node id or name. */
  agent?: string | undefined;
  attributes?: Readonly<Record<string, string>> | undefined;
  tags?: Readonly<Record<string, string>> | undefined;
  parameters?: Readonly<Record<string, Readonly<Record<string, Json>>>> | undefined;
}

/**
 * Orders the resources in modules. Resolves the modules for an agent, or for given attributes and tags. If neither is
 * given, uses the modules as written.
 * @throws MusterError unknown_module, agent_not_found, module_unresolved, module_conflict; invalid_input if both an
 * agent and attributes or tags are given
 */
export async function orderModules(context: Context, request: OrderRequest): Promise<ModuleOrder> {
  const { agent: named, attributes, tags, parameters } = request;
  if (named !== undefined && (attributes !== undefined || tags !== undefined)) {
    const message = 'cannot be combined with attributes or tags';
    throw new MusterError('invalid_input', `agent ${message}`, [{ path: '/agent', message }]);
  }
  if (tags !== undefined) requireTags(tags);
  const known = new Set((await context.db.all(modulesByName, { names: request.modules })).map(({ name }) => name));
  const missing = request.modules.flatMap((name, i) =>
    known.has(name) ? [] : [{ path: `/modules/${i}`, message: `there is no module ${JSON.stringify(name)}` }],
  );
  if (missing.length > 0) throw new MusterError('unknown_module', missing[0]?.message, missing);
  const agent = named === undefined ? null : await requireAgent(context, named);
  const loaded = await context.documents.load([...new Set(request.modules)]);
  const asWritten = agent === null && attributes === undefined && tags === undefined && parameters === undefined;
  if (asWritten) return declaredOrder(loaded);
  const facts: AgentFacts = agent
    ? { name: agent.name, node_id: agent.node_id, attributes: fromJson(agent.attributes), tags: fromJson(agent.tags) }
    : { name: null, node_id: '', attributes: attributes ?? {}, tags: tags ?? {} };
  const resolved = resolveDesiredSet({ modules: loaded, agent: facts, ...(parameters ? { parameters } : {}) });
  if (!resolved.ok) throw new MusterError(resolved.code, resolved.faults[0]?.message, resolved.faults);
  return resolvedOrder(loaded, resolved.resources);
}

type Entry = ModuleOrder['resources'][number];

function resolvedOrder(modules: readonly ModuleDocument[], resources: readonly UnfilledResource[]): ModuleOrder {
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

/** Orders modules as written, without an agent. Dependencies do not cross modules. */
function declaredOrder(modules: readonly ModuleDocument[]): ModuleOrder {
  const declared = modules.flatMap((module) => module.resources.map((resource) => ({ module: module.name, resource })));
  const indexOf = new Map(
    declared.flatMap(({ module, resource }, index) =>
      resource.id === null ? [] : [[JSON.stringify([module, resource.id]), index] as const],
    ),
  );
  const edges = declared.map(({ module, resource }) => {
    const indices = (ids: readonly string[]) =>
      [...new Set(ids)].flatMap((id) => indexOf.get(JSON.stringify([module, id])) ?? []);
    const [reload_on, restart_on, rerun_on] = (['reload_on', 'restart_on', 'rerun_on'] as const).map((trigger) =>
      indices(triggeredBy(resource, trigger)),
    ) as [number[], number[], number[]];
    const depends_on = [...new Set([...indices(resource.depends_on), ...reload_on, ...restart_on, ...rerun_on])];
    return { depends_on, reload_on, restart_on, rerun_on };
  });
  const sorted = stableOrder(edges.map(({ depends_on }) => depends_on));
  // The upload refuses modules with cycles.
  if (!sorted.ok) throw new Error('a stored module has a cycle');
  const positionOf = new Map(sorted.order.map((index, position) => [index, position]));
  const positions = (indices: readonly number[]) =>
    indices.map((index) => positionOf.get(index) as number).sort((a, b) => a - b);
  return {
    modules: modules.map(({ name }) => name),
    resources: sorted.order.map((index): Entry => {
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
}

const triggeredBy = ({ variants }: ResourceDeclaration, trigger: Trigger): string[] =>
  variants.flatMap(({ resource }) => resource.triggers[trigger] ?? []);

/** Returns the type and identity of a resource. A field is null if the variants differ in it. */
function typeAndIdentity({ variants }: ResourceDeclaration): Pick<Entry, 'type' | 'identity'> {
  const only = <T>(values: readonly T[]): T | null => (new Set(values).size === 1 ? (values[0] as T) : null);
  return {
    type: only(variants.map(({ resource }) => resource.type)),
    identity: only(variants.map(({ resource }) => identify(resource.type, resource.body).identity)),
  };
}
