import { test } from './harness.ts';
import { mainJob } from './main-job.ts';

test('an operator plans, applies, checks, changes, and removes a site on an agent, with SQLite', async ({ stage }) => {
  await mainJob(stage, await stage.orchestrator());
});
