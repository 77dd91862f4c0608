import type { Route } from './http/definition/route.ts';

/**
 * Returns the source of a module that replaces an entry point of the protocol package in a bundle. The replacement
 * omits schemas. It contains only the exports that JSON can represent, and routes with their method, path, and response
 * types. This is all that a client needs, because the orchestrator validates the input. A bundle that imports anything
 * else from the entry point fails to build.
 * @param entry all exports of the entry
 * @param whole exports of modules without schemas by their path; they are exported unchanged
 */
export function withoutSchemas(
  entry: Readonly<Record<string, unknown>>,
  whole: Readonly<Record<string, object>>,
): string {
  const lines = Object.keys(whole).map((path) => `export * from ${JSON.stringify(path)};`);
  const wholeNames = new Set(Object.values(whole).flatMap((module) => Object.keys(module)));
  for (const [name, value] of Object.entries(entry)) {
    const slim = isRoute(value) ? slimRoute(value) : value;
    if (name !== 'routes' && !wholeNames.has(name) && isPlain(slim))
      lines.push(`export const ${name} = /* @__PURE__ */ Object.freeze(${JSON.stringify(slim)});`);
  }
  return lines.join('\n');
}

const isRoute = (value: unknown): value is Route =>
  typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'answers' in value;

const slimRoute = ({ id, method, path, access, answers, media, paged }: Route) => ({
  id,
  method,
  path,
  access,
  answers: Object.fromEntries(Object.entries(answers).map(([status, schema]) => [status, schema !== null])),
  ...(media ? { media } : {}),
  ...(paged ? { paged } : {}),
});

/** Reports whether JSON can represent the value. Schemas and functions have no JSON form. */
function isPlain(value: unknown): boolean {
  if (value === null) return true;
  if (Array.isArray(value)) return value.every(isPlain);
  if (typeof value === 'object')
    return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
  return ['string', 'number', 'boolean'].includes(typeof value);
}
