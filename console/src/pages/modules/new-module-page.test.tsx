import {
  getModule,
  getOperation,
  listAgents,
  listAssignments,
  listModules,
  listOperators,
  listSecrets,
  planAgent,
  uploadModule,
  validateModule,
} from '@muster/protocol/http';
import { screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { queryClient } from '../../api/query-client.ts';
import { NewModulePage } from './new-module-page.tsx';

// CodeMirror measures its layout, and happy-dom has none.
vi.mock('../../editor/code-editor.tsx', () => ({ default: () => null }));
// Replaces the schema request, because the fake orchestrator responds only to routes in the route table.
vi.mock('../../api/modules/module-schema.ts', () => ({
  moduleSchemaQuery: { queryKey: ['module-schema'], queryFn: async () => ({}) },
}));

async function open() {
  const api = fakeApi();
  api.answerExamples(
    listAssignments,
    listAgents,
    listModules,
    listOperators,
    listSecrets,
    uploadModule,
    validateModule,
  );
  api.answerExamples(getModule);
  return { api, ...(await renderPage(NewModulePage, { path: '/modules/new' })) };
}

test('refuses to save an empty module', async () => {
  const { user } = await open();
  const save = screen.getByRole('button', { name: 'Save' });
  expect(save.getAttribute('aria-disabled')).toBe('true');
  expect(save.title).toBe('Enter a module first, or start from an example.');
  await user.click(save);
  expect(await screen.findByText('Enter a module first, or start from an example.')).toBeTruthy();
  expect(screen.queryByRole('dialog')).toBeNull();
});

test('refuses an example whose name is taken', async () => {
  const { api, user } = await open();
  const [module] = listModules.example.answer;
  api.answer(listModules, [{ ...module!, name: 'login-banner' }]);
  await queryClient.invalidateQueries();
  await user.click(screen.getByRole('button', { name: /A file/ }));
  expect(await screen.findByRole('link', { name: 'Open it' })).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(screen.queryByRole('dialog')).toBeNull();
});

test('saves an unedited example, and opens the tab that plans it', async () => {
  const { api, user, address } = await open();
  const example = screen.getByRole('button', { name: /A package and its service/ });
  await user.click(example);
  expect(example.getAttribute('aria-pressed')).toBe('true');
  await screen.findByText('Valid', { exact: false });
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(address()).toBe('/modules/motd?tab=try'));
  expect(api.received(uploadModule)).toMatchObject([{ body: { name: 'nginx' } }]);
});

test('plans a module before its first save, and keeps the plan when it is saved', async () => {
  const { api, user, address } = await open();
  api.answerExamples(planAgent);
  api.answer(getOperation, planAgent.example.answer as never);
  await user.click(screen.getByRole('button', { name: /A package and its service/ }));
  await screen.findByText('Valid', { exact: false });
  await user.click(screen.getByRole('tab', { name: 'Try it' }));
  await user.click(screen.getByRole('combobox', { name: 'Agent' }));
  await user.click(await screen.findByRole('option', { name: /web-1/ }));
  await user.click(screen.getByRole('button', { name: 'Plan on web-1' }));
  expect(await screen.findByRole('button', { name: 'Save to apply it' })).toBeTruthy();
  expect(api.received(planAgent)).toMatchObject([
    { body: { modules: [], draft: { content: expect.stringContaining('name: nginx') } } },
  ]);
  expect(api.received(uploadModule)).toEqual([]);
  await user.click(screen.getByRole('button', { name: 'Save to apply it' }));
  await waitFor(() => expect(address()).toMatch(/^\/modules\/motd\?tab=try&agent=\w+&plan=\w+$/));
});

test('explains why a module cannot be planned', async () => {
  const { api, user } = await open();
  await user.click(screen.getByRole('tab', { name: 'Try it' }));
  await user.click(screen.getByRole('combobox', { name: 'Agent' }));
  await user.click(await screen.findByRole('option', { name: /web-1/ }));
  await user.click(screen.getByRole('button', { name: 'Plan on web-1' }));
  expect(await screen.findByText('Enter a module first, or start from an example.')).toBeTruthy();
  expect(api.received(planAgent)).toEqual([]);
});
