import { getRun, listAgents, listAudit, listOperators, listRuns, type Run } from '@muster/protocol/http';
import { stalePlanError } from '@muster/protocol/stale-plan';
import { screen, within } from '@testing-library/react';
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

test('counts the skipped agents of a wave, and tells once why they were skipped', async () => {
  const api = fakeApi();
  api.answerExamples(listAgents, listAudit, listOperators, listRuns);
  const error = 'not tried: the run was halted, because a canary did not succeed';
  const failed = { ...example.results[0]!, status: 'failed', error: 'boom' } as const;
  const skipped = { ...failed, status: 'cancelled', operation_id: null, summary: null, error } as const;
  const results = [failed, ...['b', 'c'].map((name) => ({ ...skipped, node_id: name.repeat(32), name }))];
  api.answer(getRun, { ...example, kind: 'apply', status: 'halted', results } as never);
  const run_id = example.run_id;
  const started = {
    ...listAudit.example.answer.events[0],
    event_type: 'run.started',
    target: { type: 'run', id: run_id, name: 'web' },
  };
  api.answer(listAudit, {
    events: [{ ...started, metadata: { canary: 1, agents: 3 } }],
    next_cursor: null,
    has_more: false,
  } as never);
  await renderPage(RunPage, { path: '/runs/$run', at: `/runs/${run_id}?view=agents` });
  const waves = within(await screen.findByRole('list', { name: 'Waves' })).getAllByRole('listitem');
  expect(waves.map(({ textContent }) => textContent)).toEqual([
    expect.stringMatching(/^Canary1 of 1 ended/),
    expect.stringMatching(/^Remaining2 skipped/),
  ]);
  expect(await screen.findAllByText(/a canary did not succeed/)).toHaveLength(1);
  expect(screen.getAllByText('–')).toHaveLength(2);
});
