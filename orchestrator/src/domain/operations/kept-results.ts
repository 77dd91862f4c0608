import type { ResourceResult } from '@muster/protocol';

/** How much of what agents report is kept: it is theirs to say, and must not come to more than can be read again. */

/** What a row takes beside its texts. */
export const rowBytes = 128;

/** @param text of the result, as it is stored */
export const weightOf = (text: string): number => rowBytes + Buffer.byteLength(text);

/** Characters of its message that a bare result keeps. */
const mostWords = 200;

/** The result without what may be long. @param because why, for people */
export function bare(result: ResourceResult, because: string): ResourceResult {
  const words = result.message === null ? '' : `${result.message.slice(0, mostWords).toWellFormed()} `;
  return {
    ...result,
    changes: [],
    diff: null,
    triggered_by: [],
    message: `${words}(the details are left out: ${because})`,
  };
}

const sizeOf = (text: string | null): number => (text === null ? 0 : Buffer.byteLength(text));

/** Bytes of the names in a result, and of its row. */
export const namesOf = ({ module, id, type, identity }: ResourceResult): number =>
  rowBytes + sizeOf(module) + sizeOf(id) + sizeOf(type) + sizeOf(identity);

/** Bytes of what a result says beside its names. */
export const detailsOf = ({ diff, message, changes, triggered_by }: ResourceResult): number =>
  sizeOf(diff) +
  sizeOf(message) +
  changes.reduce((sum, { field, from, to }) => sum + rowBytes + sizeOf(field) + sizeOf(from) + sizeOf(to), 0) +
  triggered_by.reduce((sum, id) => sum + sizeOf(id), 0);
