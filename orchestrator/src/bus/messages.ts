import { operationStatuses } from '@muster/protocol';
import { limits } from '@muster/protocol/wire';
import { z } from 'zod';
import type { Hint } from './bus.ts';
import { maxPlainBytes } from './sealing.ts';

/** The messages between processes, as JSON. Processes of other releases may send unknown types, which are ignored. */

const id = z.string().min(1).max(128);
const secs = z.number().int().min(0);

/** Hints as they are sent to other processes. */
const wireHint = z.discriminatedUnion('type', [
  z.object({ type: z.literal('links_changed') }),
  z.object({ type: z.literal('work'), node_id: id }),
  z.object({ type: z.literal('agent_attributes'), node_id: id }),
  z.object({ type: z.literal('agent_removed'), node_id: id }),
  z.object({ type: z.literal('cancel'), node_id: id, operation_id: id }),
  z.object({
    ...{ type: z.literal('operation_ended'), operation_id: id, node_id: id, run_id: id.nullable() },
    status: z.enum(operationStatuses),
  }),
  z.object({ type: z.literal('operation_running'), operation_id: id, node_id: id, run_id: id.nullable() }),
  z.object({
    type: z.literal('output'),
    node_id: id,
    operation_id: id,
    resource: z.string().max(limits.outputResourceLength),
  }),
  z.object({ type: z.literal('run_ended'), run_id: id }),
  z.object({ type: z.literal('run_changed'), run_id: id }),
  z.object({ type: z.literal('windows_changed') }),
  z.object({ type: z.literal('deliveries_due') }),
  z.object({ type: z.literal('notifications_read'), operator_id: id }),
  z.object({ type: z.literal('operator_removed'), operator_id: id }),
  z.object({ type: z.literal('session_ended'), token_hash: id, renewed_as: id.nullable() }),
  z.object({ type: z.literal('audited') }),
  z.object({ type: z.literal('placed'), place: secs }),
]);
type WireHint = z.infer<typeof wireHint>;

/**
 * Returns what other processes need to know about a hint; null if they need nothing.
 *
 * Each process reads changed links and agent records from the database, in order, and publishes hints about them
 * itself. Other processes read a queued operation from its row.
 */
export function toWire(hint: Hint): WireHint | null {
  switch (hint.type) {
    case 'agent_changed':
    case 'agent_linked':
    case 'agent_departed':
      return { type: 'links_changed' };
    case 'hints_lost':
      return null;
    case 'work':
      return { type: 'work', node_id: hint.node_id };
    default:
      return hint;
  }
}

const message = z.discriminatedUnion('type', [
  /** Its number shows whether earlier messages were lost. Sent in every second in which no other message was sent. */
  z.object({ type: z.literal('beat') }),
  /** Requests the numbers of the receiver's last messages. */
  z.object({ type: z.literal('greeting'), nonce: id }),
  /** `all`: the number of the sender's last message to all processes. */
  z.object({ type: z.literal('numbers'), nonce: id, all: secs }),
  z.object({ type: z.literal('hints'), hints: z.array(z.unknown()).max(maxPlainBytes / 16) }),
  /** `until`: deadline in Unix milliseconds of the database server. */
  z.object({ type: z.literal('ask'), id, topic: id, until: z.number(), question: z.unknown() }),
  z.object({ type: z.literal('answer'), id, answer: z.unknown() }),
  /** The other process answers with an error. `code`: an error of the API; null if it failed to answer. */
  z.object({ type: z.literal('refusal'), id, code: id.nullable(), detail: z.string().max(10_000) }),
]);
export type Message = z.infer<typeof message>;

export const encode = (message: Message): Buffer => Buffer.from(JSON.stringify(message));

/** @returns null if this release does not support the message */
export function decode(plain: Buffer): Message | null {
  try {
    return message.safeParse(JSON.parse(plain.toString())).data ?? null;
  } catch {
    return null;
  }
}

/** Returns the hints that this release supports. */
export const hintsIn = (hints: readonly unknown[]): WireHint[] =>
  hints.flatMap((hint) => wireHint.safeParse(hint).data ?? []);
