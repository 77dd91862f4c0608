import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './tools/longest-first.ts';

// Tests start our programs hundreds of times; what Node has stripped and compiled once, the next process takes from here.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.cache/compiled');

// Judged by the clock in fractions of a second: alone, after the others.
const timed = {
  contract: [
    'orchestrator/src/http/events.contract.test.ts',
    'orchestrator/src/http/removal.contract.test.ts',
    'orchestrator/src/schedule/outbox.contract.test.ts',
  ],
  e2e: ['e2e/drain.test.ts'],
};

const contract = {
  testTimeout: 60_000,
  hookTimeout: 120_000,
  globalSetup: ['orchestrator/test/shared-postgres.ts'],
};
const bundled = ['tools/bundles-for-tests.ts'];
const e2e = { testTimeout: 120_000, hookTimeout: 120_000, globalSetup: bundled };

// Three tiers: `unit` decides on values, `contract` holds every implementation to one suite,
// `e2e` runs real processes. The latter two wait as well as work: three and four files at a time keep two cores busy.
export default defineConfig({
  test: {
    passWithNoTests: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{protocol,orchestrator,agent,cli,console,tools,packaging,bench}/**/*.test.ts'],
          exclude: ['**/node_modules/**', '**/*.contract.test.ts'],
          // Milliseconds when the machine is quiet; a limit is for what hangs, not for a machine that is busy.
          testTimeout: 60_000,
          globalSetup: bundled,
          // By itself the runner would leave one of two cores idle.
          maxWorkers: Math.max(2, availableParallelism() - 1),
        },
      },
      {
        test: {
          ...contract,
          name: 'contract',
          include: ['{protocol,orchestrator,agent}/**/*.contract.test.ts'],
          exclude: ['**/node_modules/**', ...timed.contract],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...contract,
          name: 'contract-timed',
          include: timed.contract,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...e2e,
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...timed.e2e],
          maxWorkers: 4,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...e2e,
          name: 'e2e-timed',
          include: timed.e2e,
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
