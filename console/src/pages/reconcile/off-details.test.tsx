import { getAgent, getState, listReconcile, type OffAgent } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { StateTab } from '../agents/state-tab.tsx';
import { OffDetails } from './off-details.tsx';

const off: OffAgent = {
  ...(listReconcile.example.answer[0] as never as OffAgent),
  ...{ reasons: ['unapplied'], drift: [], failed_operation: null, unfinished: [], modules: [] },
};

test.each([
  ['the details of an agent that is out of sync', <OffDetails key="off" agent={off} onWithdraw={() => {}} />],
  ['the state of an agent', <StateTab key="state" agent={getAgent.example.answer} />],
])('makes hidden characters in a resource type visible in %s', async (_, part) => {
  const { answer } = getState.example;
  const unapplied = answer.applied.map((entry) => ({ ...entry, type: 'file\u202e\nx' }));
  fakeApi().answer(getState, { ...answer, applied: [], pending_removals: [], unapplied });
  await renderPart(part);
  expect(await screen.findByText('file⟨202E⟩ x')).toBeTruthy();
});
