import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { omittedFiles } from './tools/suite/alternating-files.ts';
import { LongestFirst } from './tools/suite/longest-first.ts';

// Tests start programs of this repository hundreds of times. The cache avoids stripping types from the same files and
// compiling them again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.cache/compiled');

// These files run in separate processes, because they replace modules, or inspect the open handles or the memory of their
// process. All other files share processes, because loading modules takes a third of the time of a test.
const apart = [
  'agent/src/converge/faulty-kind.test.ts',
  'agent/src/converge/observed-last.test.ts',
  'agent/src/converge/together.test.ts',
  'agent/src/host/host.test.ts',
  'agent/src/resources/container/change.test.ts',
];
const contractApart = ['orchestrator/src/store/transfer/transfer.contract.test.ts'];
/** Tests in e2e that start no process. */
const decisions = ['e2e/faults/**/*.test.ts'];
const bundled = ['tools/suite/bundles-for-tests.ts'];
// The limits only stop tests that hang, because tests take many times longer on a busy machine. The limit of a wait is
// shorter than the limit of its test, so that the failure names the expected condition.
const patient = {
  testTimeout: 900_000,
  hookTimeout: 900_000,
  expect: { poll: { timeout: 300_000, interval: 20 } },
  setupFiles: ['tools/suite/patient-waits.ts'],
};
const unit = {
  ...patient,
  globalSetup: bundled,
  // More than Vitest's default, because the default leaves one core idle, and some files mostly wait.
  maxWorkers: Math.max(4, availableParallelism() - 1),
};
const contract = {
  ...patient,
  globalSetup: ['orchestrator/test/databases/shared-postgres.ts'],
};
// tools/suite/fair-time.ts scales the limits of waits in these tests with the load of the machine.
const e2e = {
  ...patient,
  testTimeout: 3_600_000,
  hookTimeout: 3_600_000,
  globalSetup: [...bundled, 'e2e/fill-code-caches.ts'],
};

// Three tiers: `unit` runs functions and classes, `contract` runs one suite against every implementation of an interface,
// `e2e` runs real processes. The last two have more workers, because their tests often wait: a file uses two thirds of a core
// on average.
export default defineConfig({
  test: {
    passWithNoTests: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...unit,
          name: 'unit',
          include: [
            '{protocol,lib,client,orchestrator,agent,cli,console,tools,packaging,bench}/**/*.test.ts',
            ...decisions,
          ],
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
          maxWorkers: 6,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...contract,
          name: 'contract-apart',
          include: contractApart,
          maxWorkers: 6,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...e2e,
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...decisions, ...omittedFiles(process.env)],
          isolate: false,
          maxWorkers: 8,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
