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

test('removes unassigned modules of an agent that is out of sync only by an action that says so', async () => {
  fakeApi();
  const onApply = vi.fn();
  const onDialog = vi.fn();
  const { user } = await renderPart(
    <AgentActions {...{ agent, onApply, onDialog }} keepsUnassigned={true} dialog={null} />,
  );
  await user.click(screen.getByRole('button', { name: 'Apply…' }));
  expect([onApply.mock.calls.length, onDialog.mock.calls]).toEqual([1, []]);
  await user.click(screen.getByRole('button', { name: 'More' }));
  await user.click(screen.getByRole('menuitem', { name: 'Apply, and remove unassigned modules…' }));
  expect([onApply.mock.calls.length, onDialog.mock.calls]).toEqual([1, [['apply-and-remove']]]);
});

test('waits until it is known whether an agent is out of sync before it applies', async () => {
  fakeApi();
  await renderPart(
    <AgentActions agent={agent} onApply={null} onDialog={vi.fn()} keepsUnassigned={false} dialog={null} />,
  );
  expect((screen.getByRole('button', { name: 'Apply…' }) as HTMLButtonElement).disabled).toBe(true);
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
