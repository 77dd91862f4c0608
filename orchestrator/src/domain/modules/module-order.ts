import { MusterError } from '@muster/protocol';
import type { ModuleOrder } from '@muster/protocol/http';
import {
  type AgentFacts,
  declaredOrder,
  type Json,
  resolveDesiredSet,
  resolvedOrder,
  withRequired,
} from '@muster/protocol/module';
import { fromJson } from '../../store/json-text.ts';
import { requireAgent } from '../agents/agents.ts';
import { requireTags } from '../agents/tags.ts';
import type { Context } from '../shared/context.ts';
import { createLookups } from './lookups.ts';

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
 * Orders the resources in modules. Resolves the modules for an agent, or for the specified attributes and tags. If
 * neither is specified, uses the modules as written.
 * @throws MusterError unknown_module, agent_not_found, module_unresolved, module_conflict; invalid_input if both an
 * agent and attributes or tags are specified
 */
export async function orderModules(context: Context, request: OrderRequest): Promise<ModuleOrder> {
  const { agent: named, attributes, tags, parameters } = request;
  if (named !== undefined && (attributes !== undefined || tags !== undefined)) {
    const message = 'cannot be combined with attributes or tags';
    throw new MusterError('invalid_input', `agent ${message}`, [{ path: '/agent', message }]);
  }
  if (tags !== undefined) requireTags(tags);
  const { revisions, requires } = await context.documents.newest(request.modules);
  const missing = request.modules.flatMap((name, i) =>
    revisions.has(name) ? [] : [{ path: `/modules/${i}`, message: `there is no module ${JSON.stringify(name)}` }],
  );
  if (missing.length > 0) throw new MusterError('unknown_module', missing[0]?.message, missing);
  const agent = named === undefined ? null : await requireAgent(context, named);
  const loaded = await context.documents.load(withRequired(request.modules, requires), revisions);
  const asWritten = agent === null && attributes === undefined && tags === undefined && parameters === undefined;
  if (asWritten) {
    const declared = declaredOrder(loaded);
    if (!declared.ok) throw new MusterError('module_unresolved', declared.faults[0]?.message, declared.faults);
    return declared.order;
  }
  const facts: AgentFacts = agent
    ? { name: agent.name, node_id: agent.node_id, attributes: fromJson(agent.attributes), tags: fromJson(agent.tags) }
    : { name: null, node_id: '', attributes: attributes ?? {}, tags: tags ?? {} };
  const { values: lookups } = await createLookups(context)(loaded);
  const resolved = resolveDesiredSet({ modules: loaded, agent: facts, parameters: parameters ?? {}, lookups });
  if (!resolved.ok) throw new MusterError(resolved.code, resolved.faults[0]?.message, resolved.faults);
  return resolvedOrder(loaded, resolved.resources);
}
