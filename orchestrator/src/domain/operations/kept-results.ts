import type { ResourceResult } from '@muster/protocol';

/** Computes the sizes of stored results, which are bounded because agents decide how much they report. */

/** Overhead per row in bytes. */
export const rowBytes = 128;

export const weightOf = (text: string): number => rowBytes + Buffer.byteLength(text);

/** Maximum number of characters of the message in a result without details. */
const maxMessageLength = 200;

/**
 * Returns the result without its long fields.
 * @param because displayed reason
 */
export function withoutDetails(result: ResourceResult, because: string): ResourceResult {
  const start = result.message === null ? '' : `${result.message.slice(0, maxMessageLength).toWellFormed()} `;
  return {
    ...result,
    changes: [],
    diff: null,
    triggered_by: [],
    message: `${start}(the details are left out: ${because})`,
  };
}

const sizeOf = (text: string | null): number => (text === null ? 0 : Buffer.byteLength(text));

/** Returns the size of a result's names and of its row, in bytes. */
export const sizeOfNames = ({ module, id, type, identity }: ResourceResult): number =>
  rowBytes + sizeOf(module) + sizeOf(id) + sizeOf(type) + sizeOf(identity);

export const sizeOfDetails = ({ diff, message, changes, triggered_by }: ResourceResult): number =>
  sizeOf(diff) +
  sizeOf(message) +
  changes.reduce((sum, { field, from, to }) => sum + rowBytes + sizeOf(field) + sizeOf(from) + sizeOf(to), 0) +
  triggered_by.reduce((sum, id) => sum + sizeOf(id), 0);
