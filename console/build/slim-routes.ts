import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { withoutSchemas } from '@muster/protocol/without-schemas';
import type { Plugin } from 'vite';

const name = '@muster/protocol/http';
const virtual = '\0muster-routes';

/** Bundles the route table without its schemas. The TypeScript types still describe the full table. */
export function slimRoutes(): Plugin {
  return {
    name: 'muster-slim-routes',
    enforce: 'pre',
    resolveId: (id) => (id === name ? virtual : null),
    async load(id) {
      if (id !== virtual) return null;
      const routeFile = join(dirname(createRequire(import.meta.url).resolve(name)), 'definition/route.ts');
      return withoutSchemas(await import(name), { [routeFile]: await import(routeFile) });
    },
  };
}
