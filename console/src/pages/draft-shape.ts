const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reports whether a value from the browser's storage has the same fields as the example, with the same types. */
export function isLike<T>(example: T, value: unknown): value is T {
  if (isObject(example))
    return isObject(value) && Object.entries(example).every(([name, field]) => isLike(field, value[name]));
  return typeof value === typeof example && value !== null && Array.isArray(value) === Array.isArray(example);
}
