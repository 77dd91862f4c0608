import { type ErrorCode, MusterError } from '@muster/protocol';
import { hasWritten, noteWrite } from '../request-fields.ts';
import { OutcomeUnknown } from './database.ts';
import type { Statement } from './transaction.ts';

/** Errors after which a client sends the request again, as if nothing had been changed. */
const repeated: ReadonlySet<ErrorCode> = new Set(['storage_unavailable', 'storage_full', 'draining', 'internal']);

/**
 * Returns the error for a failed read or write. After a request has committed a write, the error of its next read or
 * write is `outcome_unknown`, because the request has been served only in part.
 * @param statements the statements of the failed transaction
 */
export function errorOfRequest(error: unknown, statements: readonly Statement[] = []): unknown {
  if (!(error instanceof MusterError && repeated.has(error.code) && hasWritten())) return error;
  // Callers recognize a precondition that does not hold by its text.
  const isRefused = statements.some(({ detail }) => detail === error.message);
  // Other parts of the request have changed something.
  const failure = error.message.replace(/; nothing was changed$/, '');
  const detail = isRefused ? error.message : `The request may have been served only in part: ${failure}`;
  return new MusterError('outcome_unknown', detail);
}

/**
 * Waits for a write, and records for the request being served that it was committed, or may have been. Rejects with
 * {@link errorOfRequest}.
 */
export async function writeOfRequest<T>(write: Promise<T>, statements?: readonly Statement[]): Promise<T> {
  try {
    const result = await write;
    if (statements?.length !== 0) noteWrite();
    return result;
  } catch (error) {
    if (error instanceof OutcomeUnknown) noteWrite();
    throw errorOfRequest(error, statements);
  }
}
