import { MusterError } from '@muster/protocol';
import { endTerminal } from '../../store/queries/terminals.ts';
import { statement } from '../../store/transaction.ts';
import type { TranscriptDigest } from '../../store/transcripts/transcripts.ts';
import { audited } from '../audit/audit.ts';
import { type Context, seconds } from '../shared/context.ts';
import type { TerminalEnd } from './terminal-end.ts';

export interface EndedSession {
  readonly session_id: string;
  readonly operator_id: string;
  readonly opened_at: number;
  readonly agent: { readonly node_id: string; readonly name: string };
}

interface Pending {
  readonly session: EndedSession;
  readonly end: Pick<TerminalEnd, 'status' | 'reason' | 'actor'>;
  readonly digest: TranscriptDigest | null;
  readonly closedAt: number;
}

/** Records that sessions ended. Retries if the database fails, so that no session stays open forever. */
export class TerminalEnds {
  readonly #context: Context;
  readonly #pending = new Map<string, Pending>();
  #trying: Promise<void> | null = null;

  constructor(context: Context) {
    this.#context = context;
  }

  get waiting(): number {
    return this.#pending.size;
  }

  /** Records that a session ended. @returns whether the end was recorded; otherwise, {@link retry} records it later */
  async record(session: EndedSession, end: Pending['end'], digest: TranscriptDigest | null): Promise<boolean> {
    // Ensures that a session does not end before it started, even if the clock was set back.
    const closedAt = Math.max(session.opened_at, seconds(this.#context.now()));
    const pending = { session, end, digest, closedAt };
    this.#pending.set(session.session_id, pending);
    return this.#write(pending);
  }

  retry(): Promise<void> {
    this.#trying ??= (async () => {
      for (const pending of [...this.#pending.values()]) if (!(await this.#write(pending))) break;
      this.#trying = null;
    })();
    return this.#trying;
  }

  async #write(pending: Pending): Promise<boolean> {
    const { session, end, digest, closedAt } = pending;
    const { session_id, operator_id, opened_at, agent } = session;
    try {
      await this.#context.db.write({
        name: 'terminals/end',
        statements: [
          statement(
            endTerminal,
            {
              session_id,
              status: end.status,
              closed_at: closedAt,
              end_reason: end.reason,
              transcript_sha256: digest?.sha256 ?? null,
              transcript_bytes: digest?.bytes ?? null,
            },
            { expect: 'changed', else: 'terminal_ended' },
          ),
          audited(this.#context, {
            type: 'terminal.closed',
            actor: end.actor,
            target: { type: 'agent', id: agent.node_id, name: agent.name },
            summary: `terminal on ${agent.name} ended: ${end.reason}`,
            metadata: {
              session_id,
              operator_id,
              reason: end.reason,
              status: end.status,
              sha256: digest?.sha256 ?? null,
              bytes: digest?.bytes ?? null,
              duration_secs: closedAt - opened_at,
            },
          }),
        ],
      });
    } catch (error) {
      // The error `terminal_ended` means that an earlier attempt with an unknown outcome was successful.
      if (!(error instanceof MusterError && error.code === 'terminal_ended')) {
        this.#context.log.warn(
          { err: error, session_id },
          'failed to record that a terminal session ended; will retry',
        );
        return false;
      }
    }
    this.#pending.delete(session_id);
    return true;
  }
}
