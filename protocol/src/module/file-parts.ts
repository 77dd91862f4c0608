import { kinds, type ResourceType } from './kinds.ts';
import { quoted } from './nearest.ts';

/**
 * If a file's whole content is declared, no part of it may be declared as well. Otherwise, each resource would undo the
 * other on every apply.
 */

interface Declared {
  readonly type: ResourceType;
  readonly body: Readonly<Record<string, unknown>>;
}

const contents = ['content', 'content_base64', 'source', 'copy_of', 'template', 'symlink'];

const hasContent = ({ body }: Declared): boolean => contents.some((field) => body[field] != null);

/** Reports whether a resource creates a missing file without content. */
export const createsEmptyFile = (declared: Declared): boolean =>
  declared.type === 'file-unix' && declared.body.ensure !== 'absent' && !hasContent(declared);

/** Reports whether a resource always determines the file at its path: its content, its link target, or its absence. */
const takesWholeFile = (declared: Declared): boolean =>
  declared.type === 'download' ||
  declared.type === 'certificate-file' ||
  (declared.type === 'file-unix' &&
    (declared.body.ensure === 'absent' || (hasContent(declared) && declared.body.if_exists !== 'keep')));

/** Returns the paths of the files that a resource declares besides the object that its identity names. */
export const furtherFiles = ({ type, body }: Declared): readonly string[] => kinds[type].writes?.(body) ?? [];

/** Returns the paths of the files that a resource always determines as a whole. */
export const wholeFiles = (declared: Declared): string[] => {
  const { path } = declared.body;
  return [...(takesWholeFile(declared) && typeof path === 'string' ? [path] : []), ...furtherFiles(declared)];
};

/** Returns the key of a resource, given its path as written, which may contain expressions. */
export const keyOfFile = (path: string): string =>
  path.includes('${{') ? JSON.stringify(['path', [path]]) : `path:${path}`;

export const whyNotTwice = (path: string): string =>
  `both declare ${quoted(path)}: choose another path in one of them, or remove one`;

const values: readonly ResourceType[] = ['json-unix', 'yaml-unix', 'toml-unix'];
const parts: readonly ResourceType[] = ['line-unix', 'block-unix', 'ini-unix', ...values];

export const isPartOfFile = ({ type }: Declared): boolean => parts.includes(type);

/** Reports whether a resource declares the value at a pointer in a file. */
export const isValueOfFile = ({ type }: Declared): boolean => values.includes(type);

export const whyNotBoth = (whole: Readonly<Record<string, unknown>>): string =>
  whole.ensure === 'absent'
    ? 'declares that file absent: keep one of them'
    : 'declares the whole file, so each resource would undo the other at every apply: move the part into the content, or declare no content';
