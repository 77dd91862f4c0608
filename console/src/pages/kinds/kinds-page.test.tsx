import { type Kind, listKinds } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { KindsPage } from './kinds-page.tsx';

const [sysctl] = listKinds.example.answer;
const hosts: Kind = { ...sysctl, name: 'file-windows', summary: 'A file', platforms: ['windows'], executable: false };

test.each([
  ['?for=windows', ['file-windows']],
  ['?q=kernel', ['sysctl']],
  ['?q=file&for=linux', []],
])('shows the kinds that match %s', async (query, names) => {
  fakeApi().answer(listKinds, [sysctl, hosts]);
  await renderPage(KindsPage, { at: `/${query}` });
  await screen.findByRole('grid', { name: 'Kinds' });
  expect(screen.queryAllByRole('link').map(({ textContent }) => textContent)).toEqual(names);
});

test('lists the kinds that agents cannot apply last, and marks them', async () => {
  fakeApi().answer(listKinds, [sysctl, hosts]);
  const { user, address } = await renderPage(KindsPage, { path: '/kinds' });
  const rows = (await screen.findAllByRole('row')).slice(1);
  expect(rows.map(({ textContent }) => textContent)).toEqual([
    expect.stringMatching(/^sysctlLinux/),
    expect.stringMatching(/^file-windowsplannedWindows/),
  ]);
  await user.click(rows[0] as HTMLElement);
  expect(address()).toBe('/kinds/sysctl');
});
