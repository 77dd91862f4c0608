import type { Client } from '@muster/protocol/client';
import { type AuditEvent, chainedEventSchema } from '@muster/protocol/http';
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
    .option('--category <categories>', 'these only, with commas between them: agent, state, run, drift, auth, …')
    .option('--agent <agent>', 'what happens to one agent, and what it does')
    .option('--after <place>', 'begin behind this place of the audit log, instead of now')
    .addHelpText(
      'after',
      '\nGoes on until Ctrl-C. A connection that is lost is made again, and no event of the audit log is missed. What has no\nplace there, that an operation has ended say, is shown as it passes. With --json each line is {"event", "data"}.\n\nExamples:\n  $ muster events\n  $ muster events --category agent,drift --json',
    )
    .action(act(events));
};

export interface FollowOptions {
  category?: string;
  agent?: string;
  after?: string;
}

/** Writes each event that comes, up to the end of the program. */
export async function follow(
  context: Context,
  { category, agent, after }: FollowOptions,
  write: (frame: EventFrame, call: Client) => Promise<void>,
): Promise<undefined> {
  if (after !== undefined && !/^\d{1,16}$/.test(after))
    throw usageError(`--after is ${JSON.stringify(after)}`, 'It is the place of an event, a whole number.');
  const { call } = await context.connect();
  const node_id = agent === undefined ? undefined : (await chooseAgent(call, agent)).node_id;
  for await (const frame of followStream(context, call, { category, node_id, after })) await write(frame, call);
  return undefined;
}

/** An event of the log; null: one of the others. Whatever it is, it is shown as data only. */
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
    if (event === null) await passing(context, frame, call, names);
    else out.print(eventLine(event, out.style));
  });
};

/** What has no place in the log: for a person one dim line. */
async function passing(
  { out }: Context,
  { event, data }: EventFrame,
  call: Client,
  names: Map<string, string>,
): Promise<void> {
  const { color, now } = out.style;
  const fields = (parsed(data) ?? {}) as Record<string, unknown>;
  const { node_id, ...rest } = fields;
  const told = Object.entries(rest).flatMap(([name, value]) => (value === null ? [] : [`${name} ${String(value)}`]));
  if (typeof node_id === 'string') {
    if (!names.has(node_id)) {
      // One that is gone is asked for once as well.
      names.set(node_id, (await agentNames(call, new Set([node_id]))).get(node_id) ?? node_id);
    }
    told.unshift(names.get(node_id) ?? node_id);
  }
  out.print(
    color.dim(`${timestamp(now).slice(11, 19)} ${sanitiseLine(event).padEnd(18)} ${sanitiseLine(told.join(', '))}`),
  );
}
