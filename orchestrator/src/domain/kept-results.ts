import type { ResourceResult } from '@muster/protocol';

/** How much of what agents report is kept: it is theirs to say, and must not come to more than can be read again. */

const lengthOf = (text: string | null): number => text?.length ?? 0;

/** Characters of what a result says beside its names. */
export const detailsOf = ({ diff, message, changes, triggered_by }: ResourceResult): number =>
  lengthOf(diff) +
  lengthOf(message) +
  changes.reduce((sum, { field, from, to }) => sum + field.length + lengthOf(from) + lengthOf(to), 0) +
  triggered_by.reduce((sum, id) => sum + id.length, 0);

export const weightOf = (result: ResourceResult): number => 512 + detailsOf(result);

export const bare = (result: ResourceResult): ResourceResult => ({
  ...result,
  changes: [],
  diff: null,
  triggered_by: [],
  message: 'the details are left out: those of this operation come to too much',
});

/** Characters of its names. */
export const namesLength = ({ module, id, identity }: ResourceResult): number =>
  module.length + lengthOf(id) + identity.length;
