import type { Client } from '@muster/protocol/client';
import { listRuns } from '@muster/protocol/http';
import { findId } from '../../execution/find-id.ts';

/** Completes the ID of a run. Searches only the latest 500 runs for a partial ID. */
export const findRun = (call: Client, idPart: string): Promise<string> =>
  findId('run', 'muster runs list', idPart, async () =>
    (await call(listRuns, { query: { limit: '500' }, atMost: 500 })).map(({ run_id }) => run_id),
  );
