import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type ProxyOptions } from 'vite';
import { slimRoutes } from './build/slim-routes.ts';
import { startFirst } from './build/start-first.ts';

/** URL of the orchestrator behind the development server. */
const orchestrator = process.env.MUSTER_URL ?? 'https://127.0.0.1:4748';

const proxy: Record<string, ProxyOptions> = {
  '/schemas': { target: orchestrator, secure: false },
  '/api': {
    target: orchestrator,
    secure: false,
    ws: true,
    // Removes the Origin header, because the orchestrator refuses requests from the development server's origin.
    configure: (server) => {
      for (const event of ['proxyReq', 'proxyReqWs'] as const)
        server.on(event, (request: { removeHeader(name: string): void }) => request.removeHeader('origin'));
    },
  },
};

/**
 * Matches modules that many pages use, but not the overview, which opens first: most icons; the queries, parts, and
 * lists of agents, operations, and terminals; and dialogs and menus, which open after a click.
 */
const notFirst =
  /console\/src\/(api\/(agents|group-operations|operations|operators|tags|terminals\/[\w-]+|modules\/unassigned-modules)|parts\/(facts|in-slices|summary|dialog\/(?!toast)[\w-]+))\.tsx?$|\/lucide-react\/.*\/(?!chevron-right|shield-check)[\w-]+\.\w+$/;

/**
 * Matches code that every page uses, such as icons, small parts, and queries. Parts that import large packages or that
 * only some pages need must not match: a group contains everything that its modules import.
 */
const small =
  /console\/src\/(api\/([\w-]+\/)?|parts\/(dialog\/)?)(?!tabs)[\w-]+\.tsx?$|\/client\/src\/|\/lucide-react\//;

/** Matches tables and the modules that their filters and dialogs use, except inputs with completion. */
const tables = /console\/src\/parts\/(table|form)\/(?!picker|selector-input|fan-out)[\w-]+\.tsx?$/;

/** Matches the resource lists. */
const resources = /console\/src\/parts\/resource\/(?!diff|output)[\w-]+\.tsx?$/;

/** Matches the modules that src/app/start.ts imports. */
const started =
  /console\/src\/(app\/(nonce|sign-in-link|start|theme-choice)|api\/(agent-list|client|query-client|query-keys|live\/(dirty-agents|events|live-agents|outdated-keys|query-invalidation|staleness)|sign-in\/(server-clock|session|sign-in|token-renewal)))\.ts$|client\/src\/(bytes|event-frames|sign-in)\.ts$|protocol\/src\/(client|http\/definition\/route)\.ts$|muster-routes$|\/(query-core|eventsource-parser)\/|rolldown\/runtime/;

/**
 * Configures `vite` and `vite preview`. tools/build/build-console.ts builds the console that the orchestrator serves.
 */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [slimRoutes(), startFirst('start'), react(), tailwindcss()],
  build: {
    outDir: process.env.MUSTER_CONSOLE_OUT ?? 'dist',
    emptyOutDir: true,
    manifest: true,
    target: 'es2023',
    // The Content-Security-Policy allows files, but no inlined assets.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'start', test: started, priority: 3 },
            // Groups shared modules into a few files, because another request takes longer than another kilobyte in a file.
            { name: 'first', tags: ['$initial'], priority: 2 },
            {
              ...{ name: 'shared', minShareCount: 4, priority: 1 },
              test: (id: string) => small.test(id) && !notFirst.test(id),
            },
            { name: 'often', test: notFirst, minShareCount: 4 },
            { name: 'table', test: tables, minShareCount: 4 },
            { name: 'resource', test: resources, minShareCount: 3 },
          ],
        },
      },
    },
  },
  server: { host: '127.0.0.1', proxy },
  preview: { host: '127.0.0.1', proxy },
});
