import { formatted, list } from '../field.ts';

/** The attributes of a file or directory that chattr(1) sets. */

const letters: Readonly<Record<string, string>> = {
  a: 'append_only',
  A: 'no_access_time',
  d: 'no_dump',
  i: 'immutable',
  S: 'synchronous',
};
const names = Object.values(letters).sort();
const form = Object.entries(letters)
  .map(([letter, name]) => `${name} (${letter})`)
  .join(', ');

export const attributes = list(
  `Attributes of chattr that the object has: ${names.join(', ')}, or their letters; an empty list for none of these; others are not managed`,
  formatted(
    'An attribute',
    (text) => (names.includes(text) || letters[text] !== undefined ? undefined : `must be one of ${form}`),
    { pattern: `^(${[...names, ...Object.keys(letters)].join('|')})$`, proposals: names },
  ),
  { atMost: names.length },
);

export function normaliseAttributes(body: Record<string, unknown>): void {
  if (Array.isArray(body.attributes))
    body.attributes = [...new Set(body.attributes.map((name) => letters[String(name)] ?? String(name)))].sort();
}
