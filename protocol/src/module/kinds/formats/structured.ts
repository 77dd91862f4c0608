import { allOf, byPattern, type Check, trimmedLine } from './text.ts';

/** Maximum number of keys in a pointer. */
const maximumDepth = 32;

/** A JSON pointer (RFC 6901) to a value below the root. */
export const pointer: Check = (text) => {
  if (!text.startsWith('/')) return 'must begin with "/", such as /log/level';
  if (/~(?![01])/.test(text)) return 'must not contain "~" alone: write ~0 for "~", and ~1 for "/"';
  if (/[\n\r\0]/.test(text)) return 'must be one line, without line breaks';
  if (text.length > 1000) return 'is longer than 1000 characters';
  return text.split('/').length - 1 > maximumDepth ? `must have at most ${maximumDepth} keys` : undefined;
};

export const iniSection: Check = allOf(
  trimmedLine,
  byPattern(/^[^[\]]*$/, 'must not contain brackets: write the name of the section alone'),
);

export const iniKey: Check = allOf(
  trimmedLine,
  byPattern(/^[^#;[=][^=]*$/, 'must not contain "=", or begin with "#", ";", or "["'),
);
