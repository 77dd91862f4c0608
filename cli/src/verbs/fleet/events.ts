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
    .option('--category <categories>', 'only these categories, separated by commas: agent, state, run, drift, auth, …')
    .option('--agent <agent>', 'events of one agent')
    .option('--after <place>', 'start after this position in the audit log instead of now')
    .addHelpText(
      'after',
      '\nRuns until Ctrl-C. It reconnects after a lost connection and misses no event of the audit log. Events outside the log,\nsuch as the end of an operation, are shown only live. With --json each line is {"event", "data"}.\n\nExamples:\n  $ muster events\n  $ muster events --category agent,drift --json',
    )
    .action(act(events));
};

export interface FollowOptions {
  category?: string;
  agent?: string;
  after?: string;
}

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
  return undefined;
}

/** Returns the audit event in a frame; null for other events, which are printed only as data. */
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

/** Prints an event that is not in the audit log as one dim line. */
async function printUnrecorded(
  { out }: Context,
  { event, data }: EventFrame,
  call: Client,
  names: Map<string, string>,
): Promise<void> {
  const { color, now } = out.style;
  const fields = (parsed(data) ?? {}) as Record<string, unknown>;
  const { node_id, ...rest } = fields;
  const details = Object.entries(rest).flatMap(([name, value]) => (value === null ? [] : [`${name} ${String(value)}`]));
  if (typeof node_id === 'string') {
    if (!names.has(node_id)) {
      // Remember unknown agents too, so that each is requested only once.
      names.set(node_id, (await agentNames(call, new Set([node_id]))).get(node_id) ?? node_id);
    }
    details.unshift(names.get(node_id) ?? node_id);
  }
  out.print(
    color.dim(`${timestamp(now).slice(11, 19)} ${sanitiseLine(event).padEnd(18)} ${sanitiseLine(details.join(', '))}`),
  );
}
