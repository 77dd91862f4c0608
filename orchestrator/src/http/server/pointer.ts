import { pointer as jsonPointer } from '@muster/protocol/module';

/** Maximum length of a segment. Clients may send long names. */
const maxSegmentLength = 128;

/** Returns the JSON pointer (RFC 6901) of a path. The empty path refers to the whole value. */
export const pointer = (path: readonly PropertyKey[]): string => jsonPointer(path.map(shortened));

const shortened = (segment: PropertyKey): string => {
  const name = String(segment);
  return name.length > maxSegmentLength ? `${name.slice(0, maxSegmentLength)}…` : name;
};
