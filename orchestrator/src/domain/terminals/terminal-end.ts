import type { ErrorCode } from '@muster/protocol';
import { type Actor, systemActor } from '../shared/context.ts';
import type { TerminalNotice } from './terminal-client.ts';

export interface TerminalEnd {
  readonly status: 'closed' | 'interrupted';
  /** The reason that the audit log records. */
  readonly reason: string;
  readonly actor: Actor;
  /** The last message to clients. */
  readonly notice: TerminalNotice;
}

/** Returns an ending with a reason that is sent to the clients. */
export function ended(code: ErrorCode, reason: string, actor = systemActor): TerminalEnd {
  return { status: 'closed', reason, actor, notice: { type: 'error', code, message: reason } };
}

export function interrupted(reason: string): TerminalEnd {
  return { ...ended('terminal_interrupted', reason), status: 'interrupted' };
}
