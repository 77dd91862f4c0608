import { getRun, listAgents, listAudit, listOperators, listRuns, type Run } from '@muster/protocol/http';
import { stalePlanError } from '@muster/protocol/stale-plan';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { RunPage } from './run-page.tsx';

const example = getRun.example.answer as never as Run;

test.each(['agents', 'changes'])('describes a stale plan in words in the view "%s"', async (view) => {
  const api = fakeApi();
  api.answerExamples(listAgents, listAudit, listOperators, listRuns);
  const refused = { status: 'failed', operation_id: null, summary: null, error: stalePlanError('the secret x') };
  const results = example.results.slice(0, 1).map((result) => ({ ...result, ...refused }));
  api.answer(getRun, { ...example, kind: 'apply', status: 'halted', results } as never);
  await renderPage(RunPage, { path: '/runs/$run', at: `/runs/${example.run_id}?view=${view}` });
  // The banner of the halted run and the agent each show the text.
  expect(await screen.findAllByText('the plan is stale: the secret x')).toHaveLength(2);
  expect(screen.queryByText(/plan_stale/)).toBeNull();
});
