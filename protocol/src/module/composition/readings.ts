/** A possible meaning of a reference to a resource. */
interface Reading {
  /** The module's name; null for the module that contains the reference. */
  readonly module: string | null;
  readonly id: string;
}

/** Reports whether the reference is allowed to refer to a resource that does not exist. */
export const isOptional = (reference: string): boolean => reference.endsWith('?');

/** Bounds the work for a reference that consists only of colons. */
const maximumColons = 8;

/**
 * Returns the possible meanings of a reference such as `vhost`, `nginx:service`, or `nginx:service?`, in order of
 * precedence. IDs and module names may contain `:` and `?`, so a meaning counts only if the resource exists.
 */
export function readingsOf(reference: string): Reading[] {
  const texts = isOptional(reference) ? [reference, reference.slice(0, -1)] : [reference];
  const ofModules = texts.flatMap((text) =>
    [...text.matchAll(/:/g)]
      .slice(0, maximumColons)
      .map(({ index }) => ({ module: text.slice(0, index), id: text.slice(index + 1) })),
  );
  return [
    ...texts.map((id) => ({ module: null, id })),
    ...ofModules.filter(({ module, id }) => module !== '' && id !== ''),
  ];
}
