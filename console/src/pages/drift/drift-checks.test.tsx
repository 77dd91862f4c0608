import { getOverview, listAgents, listLatestDrift } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { DriftChecks } from './drift-checks.tsx';

test.each([
  ['', true],
  ['?status=drifted', false],
])('states how many agents were not checked, unless the list is filtered (%s)', async (query, isStated) => {
  fakeApi().answerExamples(getOverview, listAgents, listLatestDrift);
  await renderPage(DriftChecks, { at: `/${query}` });
  await screen.findByRole('grid', { name: 'Drift of each agent' });
  if (isStated) expect(await screen.findByText(/^8 agents not checked yet\./)).toBeTruthy();
  else expect(screen.queryByText(/not checked yet/)).toBeNull();
});
