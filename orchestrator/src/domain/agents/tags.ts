import { type Fault, MusterError } from '@muster/protocol';
import { pointer } from '@muster/protocol/module';
import { tagKeySchema, tagValueSchema } from '@muster/protocol/tag';
import { touchAgent } from '../../store/queries/agents/agents.ts';
import { deleteTag, deleteTags, putTag, tagBeyond, tagValues } from '../../store/queries/agents/tags.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import type { AgentRecord } from '../shared/agent-records.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { requireRecord } from './agents.ts';

/**
 * Returns the errors in a tag.
 * @param at JSON pointer of the tags in the body; empty if the key is in the path and the value in the body
 */
function tagFaults(key: string, value: string, at: string): Fault[] {
  const within = at + pointer([key]);
  const faults = (read: ReturnType<typeof tagKeySchema.safeParse>, path: string) =>
    read.success ? [] : read.error.issues.map(({ message }) => ({ path: at === '' ? path : within, message }));
  return [...faults(tagKeySchema.safeParse(key), '/key'), ...faults(tagValueSchema.safeParse(value), '/value')];
}

/** Maximum number of tags per agent. Limited because every response that describes the agent includes all its tags. */
const maxTags = 256;

/**
 * Checks tags.
 * @throws MusterError invalid_input with one error for each invalid key or value
 */
export function requireTags(tags: Readonly<Record<string, string>>): void {
  if (Object.keys(tags).length > maxTags) {
    const message = `must have at most ${maxTags} tags`;
    throw new MusterError('invalid_input', `tags ${message}`, [{ path: '/tags', message }]);
  }
  const faults = Object.entries(tags).flatMap(([key, value]) => tagFaults(key, value, '/tags'));
  if (faults.length > 0) throw new MusterError('invalid_input', faults[0]?.message, faults);
}

async function changeTags(
  context: Context,
  actor: Actor,
  { nodeId: node_id, label }: AgentRecord,
  statements: Statement[],
  summary: string,
  metadata: Record<string, unknown>,
) {
  await context.db.write({
    name: 'tags/change',
    statements: [
      ...statements,
      statement(touchAgent, { node_id, now: seconds(context.now()) }, { expect: 'changed', else: 'agent_not_found' }),
      audited(context, {
        type: 'agent.tagged',
        actor,
        target: { type: 'agent', id: node_id, name: label },
        summary,
        metadata,
      }),
    ],
  });
  context.bus.publish({ type: 'agent_changed', node_id });
}

export async function putTags(context: Context, actor: Actor, idOrName: string, tags: Record<string, string>) {
  requireTags(tags);
  const agent = await requireRecord(context, idOrName);
  const puts = Object.entries(tags).map(([key, value]) => statement(putTag, { node_id: agent.nodeId, key, value }));
  const summary = `tags of ${agent.label} replaced`;
  await changeTags(context, actor, agent, [statement(deleteTags, { node_id: agent.nodeId }), ...puts], summary, {
    tags,
  });
}

export async function putOneTag(context: Context, actor: Actor, idOrName: string, key: string, value: string) {
  const faults = tagFaults(key, value, '');
  if (faults.length > 0) throw new MusterError('invalid_input', faults[0]?.message, faults);
  const agent = await requireRecord(context, idOrName);
  const put = statement(putTag, { node_id: agent.nodeId, key, value });
  const capacity = statement(
    tagBeyond,
    { node_id: agent.nodeId, capacity: maxTags },
    {
      expect: 'no_row',
      else: 'invalid_input',
      detail: `the agent already has ${maxTags} tags, the maximum`,
    },
  );
  await changeTags(
    context,
    actor,
    agent,
    [put, capacity],
    `${agent.label} tagged ${value === '' ? key : `${key}=${value}`}`,
    {
      tags: { [key]: value },
    },
  );
}

export async function deleteOneTag(context: Context, actor: Actor, idOrName: string, key: string) {
  const agent = await requireRecord(context, idOrName);
  const remove = statement(
    deleteTag,
    { node_id: agent.nodeId, key },
    { expect: 'changed', else: 'tag_not_found', detail: `the agent has no tag ${JSON.stringify(key.slice(0, 64))}` },
  );
  await changeTags(context, actor, agent, [remove], `tag ${key} of ${agent.label} removed`, {
    removed: key,
  });
}

/** Returns all tags in use: for each key, its values with the number of agents that have them. */
export async function listTags({ db }: Context): Promise<{
  tags: Record<string, string[]>;
  counts: Record<string, Record<string, number>>;
}> {
  // Uses a map, because a tag key may be `constructor`.
  const tags = new Map<string, Map<string, number>>();
  for (const { key, value, agents } of await db.all(tagValues, {})) {
    const values = tags.get(key);
    if (values) values.set(value, Number(agents));
    else tags.set(key, new Map([[value, Number(agents)]]));
  }
  return {
    tags: Object.fromEntries([...tags].map(([key, values]) => [key, [...values.keys()]])),
    counts: Object.fromEntries([...tags].map(([key, values]) => [key, Object.fromEntries(values)])),
  };
}
