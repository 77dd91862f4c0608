import { test as base } from 'vitest';
import { Stage } from './stage.ts';

export { AgentProcess, Orchestrator, Stage } from './stage.ts';

/** Runs each test with its own stage, and prints the output of its programs if the test fails. */
export const test = base.extend<{ stage: Stage }>({
  stage: async ({ onTestFailed }, use) => {
    const stage = new Stage();
    onTestFailed(() => console.error(stage.report()));
    try {
      await use(stage);
    } finally {
      await stage.end();
    }
  },
});
