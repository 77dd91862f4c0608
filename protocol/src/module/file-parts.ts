import type { ResourceType } from './kinds.ts';

/**
 * A file whose whole content is declared cannot have a part declared besides: each apply would undo what the other
 * resource did, for ever.
 */

interface Declared {
  readonly type: ResourceType;
  readonly body: Readonly<Record<string, unknown>>;
}

const contents = ['content', 'content_base64', 'template', 'symlink'];

/** Whether nothing of a file is left to others: its content, that it is a link, or that it is not there at all. */
export const takesWholeFile = ({ type, body }: Declared): boolean =>
  type === 'file-unix' && (body.ensure === 'absent' || contents.some((field) => body[field] != null));

export const isPartOfFile = ({ type }: Declared): boolean => type === 'line-unix' || type === 'block-unix';

export const whyNotBoth = (whole: Readonly<Record<string, unknown>>): string =>
  whole.ensure === 'absent'
    ? 'declares that file absent: keep one of them'
    : 'declares all of that file, so each would undo the other at every apply: put it into the content, or declare no content';
