import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Route } from '@muster/protocol/http';
import type { Plugin } from 'vite';

const name = '@muster/protocol/http';
const virtual = '\0muster-routes';

/**
 * Bundles the route table without its schemas. The console only needs the method, path, and response types of a route;
 * the orchestrator validates the input. The TypeScript types are those of the full table. The build fails if a schema
 * is imported as a value.
 */
export function slimRoutes(): Plugin {
  return {
    name: 'muster-slim-routes',
    enforce: 'pre',
    resolveId: (id) => (id === name ? virtual : null),
    async load(id) {
      if (id !== virtual) return null;
      const table: Record<string, unknown> = await import(name);
      const source = createRequire(import.meta.url).resolve(name);
      const lines = [
        `export { apiPrefix, mediaOf } from ${JSON.stringify(join(dirname(source), 'definition/route.ts'))};`,
      ];
      for (const [key, value] of Object.entries(table)) {
        const slim = isRoute(value) ? slimRoute(value) : value;
        if (key !== 'routes' && key !== 'apiPrefix' && isPlain(slim))
          lines.push(`export const ${key} = /* @__PURE__ */ Object.freeze(${JSON.stringify(slim)});`);
      }
      return lines.join('\n');
    },
  };
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
