import {
  type AuditEvent,
  type DriftRecord,
  getAgent,
  listAgentOperations,
  listAgents,
  listAudit,
  listDrift,
  listOperators,
  planAgent,
} from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { screen, waitFor } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage, renderPart } from '../../../test/render.tsx';
import { opensApply, useOpensApply } from '../apply/opens-apply.ts';
import { NewTerminalPage } from '../terminals/terminal-page.tsx';
import { AgentActions } from './agent-actions.tsx';
import { DriftList, HistoryList, OperationsList } from './agent-lists.tsx';
import { terminalsDisabledText } from './agent-state.ts';

const agent = getAgent.example.answer;
const shared = { dialog: null, onDialog: () => {}, onApply: () => {}, keepsUnassigned: false };
const without = { ...agent, attributes: { ...agent.attributes, remote_terminal: 'false' } };

test('explains why an agent offers no terminal', async () => {
  fakeApi();
  const { user } = await renderPart(<AgentActions agent={without} {...shared} />);
  const button = screen.getByRole('button', { name: 'Terminal' });
  expect([button.getAttribute('aria-disabled'), button.title]).toEqual(['true', terminalsDisabledText]);
  await user.click(button);
  expect(await screen.findByText(terminalsDisabledText)).toBeTruthy();
});

test('links to a terminal if the agent offers terminals or does not report whether it does', async () => {
  fakeApi();
  await renderPart(<AgentActions agent={agent} {...shared} />);
  expect(screen.getByRole('link', { name: 'Terminal' })).toBeTruthy();
});

test('does not open a terminal on an agent that offers none', async () => {
  const api = fakeApi();
  api.answer(getAgent, without);
  api.answer(listAgents, [without]);
  await renderPage(NewTerminalPage, { path: '/terminals/new/$agent', at: '/terminals/new/web-1' });
  expect(await screen.findByText(terminalsDisabledText)).toBeTruthy();
  expect((screen.getByRole('button', { name: 'Open terminal' }) as HTMLButtonElement).disabled).toBe(true);
});

function Asked() {
  const navigate = useNavigate();
  const asked = useOpensApply();
  return (
    <>
      <button type="button" onClick={() => void navigate({ to: '/', state: opensApply() })}>
        Apply
      </button>
      <p>{asked === null ? 'not asked' : `asked ${asked}`}</p>
    </>
  );
}

test('opens the apply dialog again on each navigation', async () => {
  fakeApi().answerExamples(planAgent);
  const { user } = await renderPart(<Asked />);
  expect(screen.getByText('not asked')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Apply' }));
  const first = (await screen.findByText(/^asked/)).textContent;
  await user.click(screen.getByRole('button', { name: 'Apply' }));
  await waitFor(() => expect(screen.getByText(/^asked/).textContent).not.toBe(first));
});

test('names the drifted resources and the trigger of each check', async () => {
  const api = fakeApi();
  const [record] = listDrift.example.answer as never as [DriftRecord];
  const [resource] = record.resources as [DriftRecord['resources'][number]];
  const change = { field: 'mode', from: '0666', to: '0644' };
  const drifted = {
    ...resource,
    type: 'file-unix',
    identity: '/etc/motd',
    action: 'update' as const,
    changes: [change],
  };
  api.answer(listDrift, [{ ...record, status: 'drifted', trigger: 'watch', resources: [drifted] }] as never);
  await renderPart(<DriftList agent={agent} />);
  expect((await screen.findByRole('link')).textContent).toMatch(
    /^drifted\/etc\/motd: mode 0666, expected 0644change detected/,
  );
});

test('omits plans from the latest operations', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators, listAgents);
  const { operations, ...rest } = listAgentOperations.example.answer as never as { operations: [object] };
  const [example] = operations;
  const of = (kind: string) => ({ ...example, kind, operation_id: kind.padEnd(26, '0').toUpperCase() });
  api.answer(listAgentOperations, { ...rest, operations: [of('plan'), of('apply')] } as never);
  await renderPart(<OperationsList agent={agent} maxItems={5} />);
  expect((await screen.findAllByRole('link')).map((link) => link.getAttribute('href'))).toEqual([
    '/operations/APPLY000000000000000000000',
  ]);
});

test('collapses the plans in the history of an agent', async () => {
  const api = fakeApi();
  const [event] = (listAudit.example.answer as never as { events: [AuditEvent] }).events;
  const of = (id: string, event_type: string, summary: string) => ({ ...event, id, event_type, summary });
  const events = [
    of('1', 'state.planned', 'plan on web-1 succeeded'),
    of('2', 'state.requested', 'plan on web-1 requested'),
    of('3', 'state.applied', 'apply on web-1 succeeded'),
  ];
  api.answer(listAudit, { events, next_cursor: null, has_more: false } as never);
  const { user } = await renderPart(<HistoryList agent={agent} />);
  expect(await screen.findByText('Apply on web-1 succeeded')).toBeTruthy();
  expect(screen.queryByText('Plan on web-1 requested')).toBeNull();
  await user.click(screen.getByRole('button', { name: /^2 events of plans/ }));
  expect(screen.getByText('Plan on web-1 requested')).toBeTruthy();
});
