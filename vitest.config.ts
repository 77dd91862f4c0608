import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './tools/suite/longest-first.ts';

// Tests start our programs hundreds of times; what Node has stripped and compiled once, the next process takes from here.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.cache/compiled');

// Most files share a process and its loaded modules: loading was a third of their cost. The files below replace modules, or
// inspect the open handles or the memory of their process.
const apart = [
  'agent/src/converge/faulty-kind.test.ts',
  'agent/src/converge/together.test.ts',
  'agent/src/host/host.test.ts',
];
const contractApart = ['orchestrator/src/store/transfer/transfer.contract.test.ts'];
const bundled = ['tools/suite/bundles-for-tests.ts'];
// Limits only catch hangs: on a busy machine everything takes many times as long. The limits of a wait are shorter than
// those of its test, so that the failure names the awaited condition.
const patient = {
  testTimeout: 900_000,
  hookTimeout: 900_000,
  expect: { poll: { timeout: 300_000, interval: 20 } },
  setupFiles: ['tools/suite/patient-waits.ts'],
};
const unit = {
  ...patient,
  globalSetup: bundled,
  // By itself the runner would leave one of two cores idle, and every now and then a file waits.
  maxWorkers: Math.max(3, availableParallelism() - 1),
};
const contract = {
  ...patient,
  globalSetup: ['orchestrator/test/databases/shared-postgres.ts'],
};
// Waits of these tests are limited in the time of a quiet machine: tools/suite/fair-time.ts.
const e2e = {
  ...patient,
  testTimeout: 3_600_000,
  hookTimeout: 3_600_000,
  globalSetup: [...bundled, 'e2e/fill-code-caches.ts'],
};

// Three tiers: `unit` decides on values, `contract` holds every implementation to one suite,
// `e2e` runs real processes. The latter two wait as well as work: a file of `e2e` takes a quarter of a core on average.
export default defineConfig({
  test: {
    passWithNoTests: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...unit,
          name: 'unit',
          include: ['{protocol,lib,client,orchestrator,agent,cli,console,tools,packaging,bench}/**/*.test.ts'],
          exclude: ['**/node_modules/**', '**/*.contract.test.ts', ...apart],
          isolate: false,
        },
      },
      {
        test: {
          ...unit,
          name: 'unit-apart',
          include: apart,
        },
      },
      {
        test: {
          ...unit,
          name: 'unit-dom',
          include: ['console/src/**/*.test.tsx'],
          environment: 'happy-dom',
          isolate: false,
          setupFiles: ['console/test/setup.ts'],
        },
      },
      {
        test: {
          ...contract,
          name: 'contract',
          include: ['{protocol,orchestrator,agent}/**/*.contract.test.ts'],
          exclude: ['**/node_modules/**', ...contractApart],
          isolate: false,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...contract,
          name: 'contract-apart',
          include: contractApart,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...e2e,
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          maxWorkers: 9,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
