import {
  type Agent,
  type Assignment,
  getModule,
  getOperation,
  getRun,
  listAgents,
  listAssignments,
  listModuleRevisions,
  listModules,
  listOperators,
  listSecrets,
  planAgent,
  planAssignment,
  removeModule,
  uploadModule,
  validateModule,
} from '@muster/protocol/http';
import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { queryClient } from '../../api/query-client.ts';
import { ModulePage } from './module-page.tsx';

// CodeMirror measures its layout, and happy-dom has none.
vi.mock('../../editor/code-editor.tsx', () => ({ default: () => null }));
// Replaces the schema request, because the fake orchestrator responds only to routes in the route table.
vi.mock('../../api/modules/module-schema.ts', () => ({
  moduleSchemaQuery: { queryKey: ['module-schema'], queryFn: async () => ({}) },
}));

type Stored = { revision: number; content: string };
const first = getModule.example.answer as never as Stored;
const second = { ...first, revision: 2, content: first.content.replace('Welcome', 'Hello') };

/** Stores two revisions of the module `motd`. The second one is current. */
function orchestrator() {
  const api = fakeApi();
  api.answerExamples(listAgents, listAssignments, listModules, listOperators, listSecrets, validateModule);
  api.answer(getModule, ({ query }) => (query.revision === '1' ? first : second) as never);
  const [revision] = listModuleRevisions.example.answer as never as [object];
  api.answer(listModuleRevisions, [{ ...revision, revision: 2 }, revision] as never);
  return api;
}
const page = { path: '/modules/$module', at: '/modules/motd?tab=revisions' };
const button = (name: string) => screen.getByRole('button', { name }) as HTMLButtonElement;

/** Loads revision 1 into the editor: an unsaved change without typing. */
async function openEdited() {
  const api = orchestrator();
  const rendered = await renderPage(ModulePage, page);
  await rendered.user.click(await screen.findByRole('button', { name: /Restore/ }));
  await screen.findByText('· unsaved changes');
  return { api, ...rendered };
}

test('does not save a module without changes', async () => {
  orchestrator();
  await renderPage(ModulePage, page);
  expect(await screen.findByText('Revision 2', { selector: 'span' })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Save…' })).toBeNull();
  expect(fireEvent.keyDown(window, { key: 's', ctrlKey: true })).toBe(false);
  expect(await screen.findByText('No changes to save.')).toBeTruthy();
});

test('discards unsaved changes on request', async () => {
  const { user } = await openEdited();
  await user.click(button('Discard changes'));
  expect(screen.queryByText('· unsaved changes')).toBeNull();
  expect(screen.queryByRole('button', { name: 'Save…' })).toBeNull();
});

test('saves a change after Ctrl-S and a confirmation', async () => {
  const { api, user } = await openEdited();
  const third = { ...first, revision: 3 };
  api.answer(uploadModule, () => {
    api.answer(getModule, third as never);
    return uploadModule.example.answer as never;
  });
  fireEvent.keyDown(window, { key: 's', ctrlKey: true });
  const dialog = await screen.findByRole('dialog', { name: 'Save revision 3' });
  await user.click(within(dialog).getByRole('button', { name: 'Save' }));
  expect(await screen.findByText('Revision 3', { selector: 'span' })).toBeTruthy();
  await waitFor(() => expect(screen.queryByText('· unsaved changes')).toBeNull());
  expect(api.received(uploadModule)).toMatchObject([{ body: { name: 'motd', content: first.content } }]);
});

test('plans unsaved changes without saving them', async () => {
  const { api, user } = await openEdited();
  api.answerExamples(planAgent);
  api.answer(getOperation, planAgent.example.answer as never);
  await user.click(screen.getByRole('tab', { name: 'Try it' }));
  await user.click(screen.getByRole('combobox', { name: 'Agent' }));
  await user.click(await screen.findByRole('option', { name: /web-1/ }));
  await user.click(button('Plan on web-1'));
  expect(await screen.findByRole('button', { name: 'Save to apply it' })).toBeTruthy();
  expect(api.received(planAgent)).toMatchObject([{ body: { modules: [], draft: { content: first.content } } }]);
  expect(api.received(uploadModule)).toEqual([]);
});

test('removes a module after a confirmation', async () => {
  const api = orchestrator();
  api.answer(listAssignments, []);
  api.answer(removeModule, undefined as never);
  const { user, address } = await renderPage(ModulePage, page);
  await screen.findByRole('tab', { name: /Used by/ });
  await user.click(button('More'));
  await user.click(screen.getByRole('menuitem', { name: 'Remove…' }));
  const dialog = screen.getByRole('alertdialog');
  await user.click(within(dialog).getByRole('button', { name: 'Remove module' }));
  await waitFor(() => expect(address()).toBe('/modules'));
  expect(api.received(removeModule)).toMatchObject([{ params: { name: 'motd' } }]);
});

test('does not offer to remove a module that assignments use, and lists the assignments', async () => {
  const api = orchestrator();
  const { user } = await renderPage(ModulePage, page);
  await screen.findByRole('tab', { name: 'Used by 1' });
  await user.click(button('More'));
  await user.click(screen.getByRole('menuitem', { name: 'Remove…' }));
  const dialog = within(screen.getByRole('alertdialog'));
  expect(dialog.getByRole('link', { name: 'base' })).toBeTruthy();
  expect((dialog.getByRole('button', { name: 'Remove module' }) as HTMLButtonElement).disabled).toBe(true);
  expect(api.received(removeModule)).toEqual([]);
});

test('shows the modules that a module requires, and does not offer to remove one that others require', async () => {
  const api = orchestrator();
  api.answer(listAssignments, []);
  api.answer(getModule, { ...second, requires: ['base'], required_by: ['web-site'] } as never);
  const { user } = await renderPage(ModulePage, { path: '/modules/$module', at: '/modules/motd?tab=usage' });
  expect(await screen.findByRole('link', { name: 'base' })).toBeTruthy();
  expect(screen.getByRole('link', { name: 'web-site' })).toBeTruthy();
  await user.click(button('More'));
  await user.click(screen.getByRole('menuitem', { name: 'Remove…' }));
  const dialog = within(screen.getByRole('alertdialog'));
  expect(dialog.getByRole('link', { name: 'web-site' })).toBeTruthy();
  expect((dialog.getByRole('button', { name: 'Remove module' }) as HTMLButtonElement).disabled).toBe(true);
});

test('refuses to save until a conflict with a newer revision is resolved', async () => {
  const { api, user } = await openEdited();
  api.answer(getModule, { ...second, revision: 3, content: `${second.content}# from another operator\n` } as never);
  await queryClient.invalidateQueries({ queryKey: ['module', 'motd'] });
  await screen.findByRole('button', { name: 'Keep mine' });
  await user.click(screen.getByRole('tab', { name: /Used by/ }));
  await user.click(button('Save…'));
  expect(screen.queryByRole('dialog')).toBeNull();
  expect(button('Discard changes').disabled).toBe(true);
  await user.click(await screen.findByRole('button', { name: 'Keep mine' }));
  await user.click(button('Save…'));
  expect(await screen.findByRole('dialog', { name: 'Save revision 4' })).toBeTruthy();
});

test('keeps the text of a module that another operator removes', async () => {
  const api = orchestrator();
  await renderPage(ModulePage, page);
  await screen.findByText('Revision 2', { selector: 'span' });
  api.refuse(getModule, 'module_not_found');
  await queryClient.invalidateQueries({ queryKey: ['module', 'motd'] });
  expect(await screen.findByText('This module was removed')).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'More' })).toBeNull();
  expect(button('Save…').disabled).toBe(false);
});

test('restores the files of an earlier revision with its text, and shows which differ', async () => {
  const api = orchestrator();
  const [file] = (first as never as { files: [{ path: string; sha256: string }] }).files;
  const other = {
    ...second,
    files: [
      { ...file, sha256: 'a'.repeat(64) },
      { ...file, path: 'files/new' },
    ],
  };
  api.answer(getModule, ({ query }) => (query.revision === '1' ? first : other) as never);
  api.answer(uploadModule, uploadModule.example.answer as never);
  const { user } = await renderPage(ModulePage, page);
  const differing = await screen.findByRole('list', { name: 'Files that differ' });
  expect(
    within(differing)
      .getAllByRole('listitem')
      .map(({ textContent }) => textContent),
  ).toEqual([expect.stringMatching(/^files\/banner\.txt.*changed$/), expect.stringMatching(/^files\/new.*added$/)]);
  await user.click(screen.getByRole('button', { name: /Restore/ }));
  await screen.findByText('· unsaved changes');
  fireEvent.keyDown(window, { key: 's', ctrlKey: true });
  const dialog = await screen.findByRole('dialog', { name: 'Save revision 3' });
  expect(within(dialog).getByText('The files of revision 1 are restored as well')).toBeTruthy();
  await user.click(within(dialog).getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(api.received(uploadModule)).toMatchObject([{ body: { name: 'motd', files_of: 1 } }]));
});

const [assigning] = listAssignments.example.answer as never as [Assignment];
const [example] = listAgents.example.answer as never as [Agent];

test('plans the assignments of a saved module when the apply dialog opens', async () => {
  const api = orchestrator();
  const base = { ...assigning, selector: 'role=web', mode: 'enforce' };
  api.answer(listAssignments, [
    { ...base, modules: ['motd'] },
    { ...base, name: 'other', modules: ['nginx', 'ntp'] },
    { ...base, name: 'audited', modules: ['sshd'], mode: 'audit' },
    { ...base, name: 'databases', selector: 'role=db', modules: ['postgres'] },
  ] as never);
  api.answer(listAgents, [{ ...example, status: 'approved', tags: { role: 'web' } }] as never);
  api.answerExamples(planAssignment, getOperation, getRun);
  const { user } = await renderPage(ModulePage, page);
  await user.click(await screen.findByRole('button', { name: 'Apply…' }));
  expect(
    await screen.findByRole('dialog', { name: 'Apply motd and 2 other assigned modules to 1 agent' }),
  ).toBeTruthy();
  await waitFor(() => expect(api.received(planAssignment)).toMatchObject([{ params: { name: assigning.name } }]));
});

test('does not offer to apply while there are unsaved changes', async () => {
  const { api } = await openEdited();
  api.answer(listAssignments, [{ ...assigning, selector: 'role=web', modules: ['motd'], mode: 'enforce' }] as never);
  expect(screen.queryByRole('button', { name: 'Apply…' })).toBeNull();
});

test('offers to assign a module that nothing uses', async () => {
  const api = orchestrator();
  api.answer(listAssignments, []);
  const { user, address } = await renderPage(ModulePage, page);
  await user.click(await screen.findByRole('link', { name: 'Assign…' }));
  expect(address()).toBe('/assignments/new?module=motd');
});

test('tries a module on an agent that it is assigned to', async () => {
  const api = orchestrator();
  const matched = { ...example, node_id: 'f'.repeat(32), name: 'web-2', status: 'approved', connected: true };
  api.answer(listAgents, [
    { ...example, tags: {} },
    { ...matched, tags: { role: 'web' } },
  ] as never);
  api.answer(listAssignments, [{ ...assigning, selector: 'role=web', modules: ['motd'] }] as never);
  await renderPage(ModulePage, { path: '/modules/$module', at: '/modules/motd?tab=try' });
  expect(await screen.findByRole('button', { name: 'Plan on web-2' })).toBeTruthy();
});
