import type { ResourceType } from './kinds.ts';

/**
 * If the whole content of a file is declared, no part of it can be declared as well: each apply would undo the other
 * resource.
 */

interface Declared {
  readonly type: ResourceType;
  readonly body: Readonly<Record<string, unknown>>;
}

const contents = ['content', 'content_base64', 'template', 'symlink'];

/** True if a resource declares the whole file: its content, its link target, or its absence. */
export const takesWholeFile = ({ type, body }: Declared): boolean =>
  type === 'file-unix' && (body.ensure === 'absent' || contents.some((field) => body[field] != null));

export const isPartOfFile = ({ type }: Declared): boolean => type === 'line-unix' || type === 'block-unix';

export const whyNotBoth = (whole: Readonly<Record<string, unknown>>): string =>
  whole.ensure === 'absent'
    ? 'declares that file absent: keep one of them'
    : 'declares all of that file, so each would undo the other at every apply: put it into the content, or declare no content';
