import { defineConfig } from 'vitest/config';

// Three tiers: `unit` decides on values, `contract` holds every implementation to one suite,
// `e2e` runs real processes. One file at a time in e2e: its tests time real sockets on few cores.
export default defineConfig({
  test: {
    passWithNoTests: false,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{protocol,orchestrator,agent,cli,tools,bench}/**/*.test.ts'],
          exclude: ['**/node_modules/**', '**/*.contract.test.ts'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'contract',
          include: ['{protocol,orchestrator,agent}/**/*.contract.test.ts'],
          exclude: ['**/node_modules/**'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
