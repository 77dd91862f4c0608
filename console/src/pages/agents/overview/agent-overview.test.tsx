import {
  getAgent,
  latestDrift,
  listAgentOperations,
  listAgents,
  listAssignments,
  listModules,
  listReconcile,
  listTags,
  listWindows,
  type OffAgent,
} from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../../test/fake-api.ts';
import { renderPart } from '../../../../test/render.tsx';
import { AgentActions } from '../agent-actions.tsx';
import { TagsPanel } from '../tags-editor.tsx';
import { DesiredState } from './desired-state.tsx';
import { isRepairable } from './out-of-sync.tsx';

const agent = { ...getAgent.example.answer, connected: true };

test('shows the fields of a new tag on request, and hides them on Escape', async () => {
  fakeApi().answerExamples(listAgents, listTags);
  const { user } = await renderPart(<TagsPanel agent={agent} />);
  expect(screen.queryByLabelText('New tag key')).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Add tag' }));
  expect(document.activeElement).toBe(screen.getByLabelText('New tag key'));
  expect(screen.queryByRole('button', { name: 'Add tag' })).toBeNull();
  await user.keyboard('{Escape}');
  expect(screen.queryByLabelText('New tag key')).toBeNull();
});

test('repairs an agent that is out of sync with its Apply button, and applies assigned modules only on request', async () => {
  fakeApi();
  const onRepair = vi.fn();
  const onDialog = vi.fn();
  const { user } = await renderPart(<AgentActions {...{ agent, onRepair, onDialog }} dialog={null} />);
  await user.click(screen.getByRole('button', { name: 'Apply…' }));
  expect([onRepair.mock.calls.length, onDialog.mock.calls]).toEqual([1, []]);
  await user.click(screen.getByRole('button', { name: 'More' }));
  await user.click(screen.getByRole('menuitem', { name: 'Apply assigned modules only…' }));
  expect([onRepair.mock.calls.length, onDialog.mock.calls]).toEqual([1, [['apply']]]);
});

test('applies to an agent that is in sync with the same button', async () => {
  fakeApi();
  const onDialog = vi.fn();
  const { user } = await renderPart(<AgentActions {...{ agent, onDialog }} dialog={null} />);
  await user.click(screen.getByRole('button', { name: 'Apply…' }));
  expect(onDialog.mock.calls).toEqual([['apply']]);
});

test('repairs only an agent that is out of sync', () => {
  const [off] = listReconcile.example.answer as never as [OffAgent];
  expect(isRepairable(off)).toBe(true);
  expect(isRepairable(null)).toBe(false);
});

test('states that an agent was never applied, also if nothing is assigned to it', async () => {
  const api = fakeApi();
  for (const route of [listAssignments, listModules, listWindows]) api.answer(route, []);
  api.answer(latestDrift, null as never);
  api.answer(listAgentOperations, { ...listAgentOperations.example.answer, operations: [] } as never);
  await renderPart(<DesiredState agent={agent} off={null} />);
  expect((await screen.findByText('never applied')).previousElementSibling?.className).toContain('border-2');
  expect(screen.getByText('nothing is assigned')).toBeTruthy();
});
