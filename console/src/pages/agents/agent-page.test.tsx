import { type DriftRecord, getAgent, listAgents, listDrift, planAgent } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { screen, waitFor } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage, renderPart } from '../../../test/render.tsx';
import { opensApply, useOpensApply } from '../apply/opens-apply.ts';
import { NewTerminalPage } from '../terminals/terminal-page.tsx';
import { AgentActions } from './agent-actions.tsx';
import { DriftList } from './agent-lists.tsx';
import { terminalsDisabledText } from './agent-state.ts';

const agent = getAgent.example.answer;
const without = { ...agent, attributes: { ...agent.attributes, remote_terminal: 'false' } };

test('says why an agent offers no terminal', async () => {
  fakeApi();
  const { user } = await renderPart(<AgentActions agent={without} dialog={null} onDialog={() => {}} />);
  const button = screen.getByRole('button', { name: 'Terminal' });
  expect([button.getAttribute('aria-disabled'), button.title]).toEqual(['true', terminalsDisabledText]);
  await user.click(button);
  expect(await screen.findByText(terminalsDisabledText)).toBeTruthy();
});

test('links to a terminal if the agent offers terminals or does not report whether it does', async () => {
  fakeApi();
  await renderPart(<AgentActions agent={agent} dialog={null} onDialog={() => {}} />);
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
