/** Maximum length of a segment. Clients may send long names. */
const maxSegmentLength = 128;

/** Returns the JSON pointer (RFC 6901) of a path. The empty path refers to the whole value. */
export function pointer(path: readonly PropertyKey[]): string {
  let text = '';
  for (const segment of path) {
    const name = String(segment);
    const short = name.length > maxSegmentLength ? `${name.slice(0, maxSegmentLength)}…` : name;
    text += `/${short.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  }
  return text;
}
