import type { AgentValue } from '@muster/protocol/http';
import { valueReports } from '@muster/protocol/module';
import { getAgent } from '../agents/agents.ts';
import type { Context } from '../shared/context.ts';
import type { Page, PageRequest } from '../shared/page.ts';
import { currentModules } from './resolve-agent.ts';

/** Values of the parameters of an agent's modules, with their layers. */

/** Maximum size of a page as JSON, in characters. A page has at least one item. */
const maximumPage = 4 * 1024 * 1024;

/**
 * Lists the parameters of the modules that an agent's assignments enforce now, in the order of the modules.
 * @throws MusterError agent_not_found
 */
export async function listValues(
  context: Context,
  idOrName: string,
  { module, limit, offset }: PageRequest & { module?: string | undefined },
): Promise<Page<AgentValue>> {
  const agent = await getAgent(context, idOrName);
  const { desired, documents } = await currentModules(context, agent, []);
  // Every layer that does not come from a module comes from a named assignment, so no layer is `given`.
  const all = valueReports(documents, desired.layers, agent) as AgentValue[];
  const wanted = module === undefined ? all : all.filter((value) => value.module === module);
  const items: AgentValue[] = [];
  let length = 0;
  for (const value of wanted.slice(offset, offset + limit)) {
    length += JSON.stringify(value).length;
    if (length > maximumPage && items.length > 0) break;
    items.push(value);
  }
  return { items, more: limit > 0 && offset + items.length < wanted.length };
}
