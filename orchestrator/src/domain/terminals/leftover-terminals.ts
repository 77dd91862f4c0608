import type { Transcripts } from '../../store/transcripts/transcripts.ts';
import { agentLabel } from '../shared/agent-label.ts';
import type { Context } from '../shared/context.ts';
import { interrupted } from './terminal-end.ts';
import type { EndedSession, TerminalEnds } from './terminal-ends.ts';

type Leftover = Omit<EndedSession, 'agent'> & { readonly node_id: string };

/** Repairs the transcripts of sessions that an ended process left open, then records that these sessions ended. */
export async function interruptLeftovers(
  context: Context,
  transcripts: Transcripts,
  ends: TerminalEnds,
  leftovers: readonly Leftover[],
): Promise<void> {
  const { log } = context;
  const end = interrupted(
    context.isReplica ? 'the replica that held the terminal has ended' : 'the orchestrator restarted',
  );
  for (const leftover of leftovers) {
    const { session_id, node_id } = leftover;
    // Continues after an unreadable file, which must not keep other sessions open.
    await transcripts
      .repair(session_id)
      .catch((error: unknown) =>
        log.warn({ err: error, session_id }, 'failed to repair transcript; its last line may be incomplete'),
      );
    const digest = await transcripts.digest(session_id).catch((error: unknown) => {
      log.warn({ err: error, session_id }, 'failed to read transcript');
      return null;
    });
    const name = await agentLabel(context, node_id).catch(() => node_id);
    await ends.record({ ...leftover, agent: { node_id, name } }, end, digest);
  }
}
