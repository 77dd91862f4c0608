import {
  type Assignment,
  createAssignment,
  getAssignment,
  getModule,
  getOperation,
  getRun,
  listAgents,
  listAssignments,
  listModules,
  listOperators,
  listReconcile,
  listRuns,
  listTags,
  matchSelector,
  planAssignment,
  removeAssignment,
  updateAssignment,
} from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { AssignmentPage, NewAssignmentPage } from './assignment-page.tsx';

const base = getAssignment.example.answer as never as Assignment & { matches: string[] };

function orchestrator() {
  const api = fakeApi();
  api.answerExamples(listAgents, listAssignments, listModules, listOperators, listRuns, listTags, getModule);
  api.answerExamples(listReconcile, matchSelector);
  api.answerExamples(getAssignment, createAssignment, updateAssignment, planAssignment);
  return api;
}
const page = { path: '/assignments/$assignment', at: '/assignments/base' };
const button = (name: string) => screen.getByRole('button', { name }) as HTMLButtonElement;

test('plans an assignment and opens the run', async () => {
  const api = orchestrator();
  const { user, address } = await renderPage(AssignmentPage, page);
  expect(await screen.findByText('Matches 1 agent')).toBeTruthy();
  await user.click(button('Plan'));
  await waitFor(() => expect(address()).toMatch(/^\/runs\//));
  expect(api.received(planAssignment)).toHaveLength(1);
});

test('offers neither a plan nor an apply without matching agents', async () => {
  orchestrator().answer(getAssignment, { ...base, matches: [] } as never);
  await renderPage(AssignmentPage, page);
  expect(await screen.findByText('Matches no agent')).toBeTruthy();
  expect(button('Plan').disabled).toBe(true);
  expect(button('Apply…').disabled).toBe(true);
});

test('offers no apply for an audit assignment', async () => {
  orchestrator().answer(getAssignment, { ...base, mode: 'audit' } as never);
  await renderPage(AssignmentPage, page);
  await screen.findByText('audit');
  expect(screen.queryByRole('button', { name: 'Apply…' })).toBeNull();
});

test('plans when the apply dialog opens', async () => {
  const api = orchestrator();
  api.answerExamples(getOperation, getRun);
  const { user } = await renderPage(AssignmentPage, page);
  await screen.findByText('Matches 1 agent');
  await user.click(button('Apply…'));
  const dialog = within(await screen.findByRole('dialog', { name: 'Apply base to 1 agent' }));
  expect(await dialog.findByRole('button', { name: 'Apply 1 change' })).toBeTruthy();
  expect(api.received(planAssignment)).toHaveLength(1);
});

test('names the other assignments that an apply includes, and marks their modules in the plan', async () => {
  const api = orchestrator();
  const [listed] = listAssignments.example.answer as never as [Assignment];
  const other = { ...listed, name: 'hardening', modules: ['motd'], selector: 'role=web' };
  api.answer(getAssignment, { ...base, modules: ['nginx'] } as never);
  api.answer(listAssignments, [listed, other, { ...other, name: 'databases', selector: 'role=db' }] as never);
  api.answerExamples(getOperation, getRun);
  const { user } = await renderPage(AssignmentPage, page);
  await screen.findByText('Matches 1 agent');
  await user.click(button('Apply…'));
  const title = 'Apply base and 1 other assignment to 1 agent';
  const dialog = within(await screen.findByRole('dialog', { name: title }));
  expect(dialog.getByRole('link', { name: 'hardening' }).getAttribute('href')).toBe('/assignments/hardening');
  expect(dialog.queryByRole('link', { name: 'databases' })).toBeNull();
  expect((await dialog.findByRole('heading', { name: /^motd/ })).textContent).toContain(
    'from the assignment hardening',
  );
});

test('removes an assignment after a confirmation', async () => {
  const api = orchestrator();
  api.answer(removeAssignment, undefined as never);
  const { user, address } = await renderPage(AssignmentPage, page);
  await screen.findByText('Matches 1 agent');
  await user.click(button('More'));
  await user.click(screen.getByRole('menuitem', { name: 'Remove…' }));
  const dialog = screen.getByRole('alertdialog');
  expect(dialog.textContent).toContain('It matches 1 agent.');
  await user.click(within(dialog).getByRole('button', { name: 'Remove assignment' }));
  await waitFor(() => expect(address()).toBe('/assignments'));
  expect(api.received(removeAssignment)).toMatchObject([{ params: { name: 'base' } }]);
});

test('lists applies on the overview, and runs of all kinds on their tab', async () => {
  const api = orchestrator();
  const { user } = await renderPage(AssignmentPage, page);
  await screen.findByText('Last applies');
  expect(api.received(listRuns).map(({ query }) => query.kind)).toEqual(['apply']);
  await user.click(screen.getByRole('tab', { name: 'Runs' }));
  await waitFor(() => expect(api.received(listRuns).map(({ query }) => query.kind)).toEqual(['apply', undefined]));
});

test("lists an assignment's parameters", async () => {
  orchestrator().answer(getAssignment, { ...base, parameters: { motd: { text: 'Hello' } } } as never);
  await renderPage(AssignmentPage, page);
  expect((await screen.findByRole('table')).textContent).toContain('motdtextHello');
});

test('sends only the assignment fields that changed', async () => {
  const api = orchestrator();
  const { user } = await renderPage(AssignmentPage, { ...page, at: `${page.at}?tab=edit` });
  await screen.findByText('These modules take no parameters.');
  expect(button('Save changes').disabled).toBe(true);
  await user.click(screen.getByRole('radio', { name: /Audit/ }));
  await user.click(button('Save changes'));
  expect(await screen.findByText('Saved. Changes take effect with the next apply.')).toBeTruthy();
  expect(api.received(updateAssignment)).toMatchObject([{ params: { name: 'base' }, body: { mode: 'audit' } }]);
  expect(Object.keys(api.received(updateAssignment)[0]?.body as object)).toEqual(['mode']);
});

test('shows missing fields in a new assignment only after an attempt to create it', async () => {
  const api = orchestrator();
  const { user } = await renderPage(NewAssignmentPage, { path: '/assignments/new' });
  expect(screen.queryByText('Enter a name.')).toBeNull();
  await user.click(button('Create assignment'));
  for (const fault of ['Enter a name.', 'Add a module.', 'Enter a selector. An empty one matches no agent.'])
    expect(screen.getByText(fault)).toBeTruthy();
  expect(api.received(createAssignment)).toEqual([]);
});

test('moves the focus to the first field that is wrong', async () => {
  orchestrator();
  const { user } = await renderPage(NewAssignmentPage, { path: '/assignments/new' });
  await user.click(button('Create assignment'));
  await waitFor(() => expect(document.activeElement).toBe(screen.getByLabelText('Name')));
  await user.type(screen.getByLabelText('Name'), 'web');
  await user.click(button('Create assignment'));
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('combobox', { name: 'Add a module' })));
});

test('creates an assignment and opens it', async () => {
  const api = orchestrator();
  const { user, address } = await renderPage(NewAssignmentPage, { path: '/assignments/new' });
  await user.type(screen.getByLabelText('Name'), 'web');
  await user.type(screen.getByRole('combobox', { name: 'Add a module' }), 'motd{Enter}');
  await user.type(screen.getByRole('combobox', { name: 'Selector' }), 'role=web');
  expect(await screen.findByText('1 agent')).toBeTruthy();
  await user.click(screen.getByLabelText('Only in maintenance windows'));
  await user.click(button('Create assignment'));
  await waitFor(() => expect(address()).toBe('/assignments/base'));
  expect(api.received(createAssignment)).toMatchObject([
    { body: { name: 'web', modules: ['motd'], selector: 'role=web', mode: 'enforce', window_only: true } },
  ]);
});

test('creates an assignment that only sets parameter values', async () => {
  const api = orchestrator();
  const content = 'name: motd\nparameters: { text: { type: string }, size: { type: integer, default: 1 } }\n';
  api.answer(getModule, { ...(getModule.example.answer as object), content } as never);
  const { user } = await renderPage(NewAssignmentPage, { path: '/assignments/new' });
  await user.type(screen.getByLabelText('Name'), 'paris');
  await user.click(screen.getByRole('radio', { name: /Set parameters only/ }));
  expect(screen.queryByLabelText('Only in maintenance windows')).toBeNull();
  await user.type(screen.getByRole('combobox', { name: 'Add a module' }), 'motd{Enter}');
  await user.type(screen.getByRole('combobox', { name: 'Selector' }), 'site=paris');
  await user.clear(screen.getByLabelText('Precedence'));
  await user.type(screen.getByLabelText('Precedence'), '10');
  await user.click(button('Create assignment'));
  expect(screen.getByText('Give a value to a parameter below.')).toBeTruthy();
  await user.type(await screen.findByLabelText(/size/), '3');
  await user.click(button('Create assignment'));
  await waitFor(() => expect(api.received(createAssignment)).toHaveLength(1));
  expect(api.received(createAssignment)).toMatchObject([
    { body: { name: 'paris', modules: [], parameters: { motd: { size: 3 } }, precedence: 10, mode: 'enforce' } },
  ]);
});

test('edits an assignment that only sets parameter values', async () => {
  const api = orchestrator();
  api.answer(getAssignment, { ...base, modules: [], parameters: { motd: { size: 3 } } } as never);
  const content = 'name: motd\nparameters: { size: { type: integer, default: 1 } }\n';
  api.answer(getModule, { ...(getModule.example.answer as object), content } as never);
  const { user } = await renderPage(AssignmentPage, { ...page, at: `${page.at}?tab=edit` });
  const size = await screen.findByLabelText(/size/);
  await user.clear(size);
  await user.type(size, '4');
  await user.click(button('Save changes'));
  await waitFor(() => expect(api.received(updateAssignment)).toHaveLength(1));
  expect(api.received(updateAssignment)[0]?.body).toEqual({ parameters: { motd: { size: 4 } } });
});

test('starts a new assignment with the module that the link names', async () => {
  orchestrator();
  await renderPage(NewAssignmentPage, { path: '/assignments/new', at: '/assignments/new?module=motd' });
  expect(((await screen.findByRole('textbox', { name: /^Name/ })) as HTMLInputElement).value).toBe('motd');
  expect(screen.getByRole('button', { name: /Remove motd/ })).toBeTruthy();
});

test('shows the sync state of each matching agent while the selector is edited', async () => {
  orchestrator();
  await renderPage(AssignmentPage, { ...page, at: '/assignments/base?tab=edit' });
  const agents = within(await screen.findByRole('list', { name: 'Matching agents' }));
  expect(await agents.findByText('apply failed')).toBeTruthy();
});
