import { test } from './harness.ts';
import { mainJob } from './main-job.ts';

test('a site is planned, applied, watched for drift, changed and taken away again', async ({ stage }) => {
  await mainJob(stage, await stage.orchestrator());
});
