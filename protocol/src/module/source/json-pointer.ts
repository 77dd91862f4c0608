/** Returns the JSON pointer (RFC 6901) that consists of these keys. Without keys, it refers to the whole value. */
export const pointer = (keys: readonly PropertyKey[]): string => keys.map(pointerPart).join('');

const pointerPart = (key: PropertyKey): string => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;

/** Returns the keys of a JSON pointer. */
export const pointerKeys = (text: string): string[] =>
  text
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
