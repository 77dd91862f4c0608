/** A hostile name must not make an answer endless; a pointer this long is of no use to anybody. */
const longestSegment = 128;

/** The JSON pointer (RFC 6901) of a path; the empty path is the whole value. */
export function pointer(path: readonly PropertyKey[]): string {
  let text = '';
  for (const segment of path) {
    const name = String(segment);
    const short = name.length > longestSegment ? `${name.slice(0, longestSegment)}…` : name;
    text += `/${short.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  }
  return text;
}
