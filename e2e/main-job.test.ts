import { test } from './harness.ts';
import { mainJob } from './main-job.ts';

test('plans, applies, watches, changes, and removes a site', async ({ stage }) => {
  await mainJob(stage, await stage.orchestrator());
});
