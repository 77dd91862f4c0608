import type { Client } from '@muster/protocol/client';
import { type AuditEvent, chainedEventSchema } from '@muster/protocol/http';
import { z } from 'zod';
import type { EventFrame } from '../../../../client/src/event-frames.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { followStream } from '../../execution/event-stream.ts';
import { usageError } from '../../exit.ts';
import { agentNames } from '../../text/agent-label.ts';
import { eventLine } from '../../text/event-text.ts';
import { sanitiseLine, toJson } from '../../text/sanitize.ts';
import { timestamp } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .option('--category <categories>', 'Only these categories, such as agent,run,drift')
    .option('--agent <agent>', 'Events of one agent')
    .option('--after <place>', 'Start after this position in the audit log')
    .addHelpText(
      'after',
      '\nRuns until Ctrl-C. It reconnects after a lost connection and misses no event of the audit log. Connections of agents\nare not in the log and are shown only live. With --json each line is {"event", "data"}, for every message in the API’s event stream.\n\nExamples:\n  $ muster events\n  $ muster events --category agent,drift --json',
    )
    .action(act(events));
};

export interface FollowOptions {
  category?: string;
  agent?: string;
  after?: string;
}

const changeSchema = z.object({ node_id: z.string(), change: z.string() });
/** The data of `agent` and `agents`, as documented for `GET /events`. */
const unrecordedSchema = z.union([
  z.object({ agents: z.array(changeSchema).nullable() }),
  changeSchema.transform((one) => ({ agents: [one] })),
]);

/** Passes each event to `write` until the program exits. */
export async function follow(
  context: Context,
  { category, agent, after }: FollowOptions,
  write: (frame: EventFrame, call: Client) => Promise<void>,
): Promise<undefined> {
  if (after !== undefined && !/^\d{1,16}$/.test(after))
    throw usageError(
      `--after cannot be ${JSON.stringify(after)}`,
      'Specify the position of an event in the audit log, which is a whole number.',
    );
  const { call } = await context.connect();
  const node_id = agent === undefined ? undefined : (await chooseAgent(call, agent)).node_id;
  for await (const frame of followStream(context, call, { category, node_id, after })) await write(frame, call);
}

/** Returns the audit event in a frame; null for other events, of which only the data is printed. */
export function auditEventOf({ event, data }: EventFrame): AuditEvent | null {
  if (event !== 'message') return null;
  const read = chainedEventSchema.safeParse(parsed(data));
  return read.success ? read.data : null;
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

const events = (context: Context, options: FollowOptions): Promise<undefined> => {
  const { out } = context;
  const names = new Map<string, string>();
  return follow(context, options, async (frame, call) => {
    if (out.json) {
      const event = frame.event === 'message' ? 'audit' : frame.event;
      out.raw(`${toJson({ event, data: parsed(frame.data) }, 'line')}\n`);
      return;
    }
    const event = auditEventOf(frame);
    if (event === null) await printUnrecorded(context, frame, call, names);
    else out.print(eventLine(event, out.style));
  });
};

const changeWords: Readonly<Record<string, string>> = {
  connected: 'connected',
  disconnected: 'disconnected',
  attributes: 'reported changed attributes',
};

/**
 * Prints a change to an agent as one dim line, for changes that are not in the audit log. The log describes all other
 * changes in sentences.
 */
async function printUnrecorded(
  { out }: Context,
  { event, data }: EventFrame,
  call: Client,
  names: Map<string, string>,
): Promise<void> {
  const { color, now } = out.style;
  const line = (text: string) =>
    out.print(color.dim(`${timestamp(now).slice(11, 19)} ${'agent'.padEnd(18)} ${sanitiseLine(text)}`));
  if (event === 'gap') {
    out.warn('some events are missing (removed, or never recorded); continuing after them');
    return;
  }
  if (event !== 'agent' && event !== 'agents') return;
  const found = unrecordedSchema.safeParse(parsed(data));
  if (!found.success) return;
  const { agents } = found.data;
  if (agents === null) line('many agents changed');
  for (const { node_id, change } of agents ?? []) {
    const word = Object.hasOwn(changeWords, change) ? changeWords[change] : undefined;
    if (word === undefined) continue;
    // Caches unknown agents too, so that each one is requested only once.
    if (!names.has(node_id))
      names.set(node_id, (await agentNames(call, new Set([node_id]))).get(node_id) ?? node_id.slice(0, 12));
    line(`${names.get(node_id)} ${word}`);
  }
}
