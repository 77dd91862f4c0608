import type { Client } from '@muster/protocol/client';
import { listOperations } from '@muster/protocol/http';
import { findId } from '../../execution/find-id.ts';

/** Completes the ID of an operation. Searches only the latest 500 operations for a partial ID. */
export const findOperation = (call: Client, idPart: string): Promise<string> =>
  findId('operation', 'muster operations list', idPart, async () =>
    (await call(listOperations, { query: { limit: '500' } })).operations.map(({ operation_id }) => operation_id),
  );
