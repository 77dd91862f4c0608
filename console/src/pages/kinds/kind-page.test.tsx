import { getKind, type KindField } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { KindPage } from './kind-page.tsx';

const example = getKind.example.answer;
const open = (name = 'sysctl') => renderPage(KindPage, { path: '/kinds/$kind', at: `/kinds/${name}` });
const fieldTexts = async () =>
  within(await screen.findByRole('list', { name: 'Fields' }))
    .getAllByRole('listitem')
    .map(({ textContent }) => textContent);

test('shows placeholders while the kind loads', async () => {
  fakeApi().hold(getKind);
  await open();
  expect(screen.getByRole('status', { name: 'Loading the kind' })).toBeTruthy();
});

test('shows the fields of the kind that the URL names', async () => {
  const api = fakeApi();
  api.answerExamples(getKind);
  await open();
  expect(await fieldTexts()).toEqual([
    'keyrequiredidentitytextName of the parameter',
    'valuerequiredtextValue of the parameter',
    'ensurepresent, absent · default presentDesired presence of the resource',
  ]);
  expect(api.received(getKind)).toMatchObject([{ params: { name: 'sysctl' } }]);
  expect(screen.getByText('A kernel parameter.')).toBeTruthy();
  expect(screen.queryByText(/do not apply this kind/)).toBeNull();
  expect(screen.getByText('Description')).toBeTruthy();
  expect(screen.getByText(/key: net.ipv4.ip_forward/).tagName).toBe('CODE');
});

test('shows groups of fields and sensitive fields, and notes that no agent applies the kind', async () => {
  const [key] = example.fields as [KindField];
  const fields = [{ ...key, name: 'password', sensitive: true, description: 'Its password' }];
  fakeApi().answer(getKind, { ...example, executable: false, fields, exclusive: [['content', 'template']] });
  await open('user-windows');
  expect(await fieldTexts()).toEqual(['passwordrequiredidentitytextIts password; never shown']);
  expect(screen.getByText('content, template')).toBeTruthy();
  expect(screen.getByText('Agents of this release do not apply this kind yet')).toBeTruthy();
});

test('suggests a similar name for an unknown kind, and offers the list', async () => {
  const api = fakeApi();
  api.refuse(getKind, 'kind_not_found', 'there is no kind "sysctrl": did you mean "sysctl"?');
  await open('sysctrl');
  expect((await screen.findByRole('alert')).textContent).toContain('did you mean "sysctl"?');
  expect(screen.getByRole('link', { name: 'All kinds' }).getAttribute('href')).toBe('/kinds');
  expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
});
