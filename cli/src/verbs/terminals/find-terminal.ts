import type { Client } from '@muster/protocol/client';
import { listTerminals, type TerminalSession } from '@muster/protocol/http';
import { findId } from '../../execution/find-id.ts';

/** Completes the ID of a terminal session. Searches only the latest 500 sessions for a partial ID. */
export const findTerminal = (call: Client, idPart: string, status?: TerminalSession['status']): Promise<string> =>
  findId('terminal session', 'muster terminal list', idPart, async () =>
    (
      await call(listTerminals, { query: { limit: '500', ...(status === undefined ? {} : { status }) }, atMost: 500 })
    ).map(({ session_id }) => session_id),
  );
