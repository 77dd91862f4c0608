import { listEnrolmentTokens, listOperators } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import type { EnrolmentToken } from '../../api/enrollment.ts';
import { TokensTable } from './tokens-table.tsx';

test('shows the tags of a token that fit one line, and the number of the others', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators);
  const [token] = listEnrolmentTokens.example.answer as never as [EnrolmentToken];
  const expires_at = Math.floor(Date.now() / 1000) + 3_600;
  const tags = { role: 'web', site: 'paris' };
  api.answer(listEnrolmentTokens, [
    { ...token, name: 'web-9', tags, expires_at, uses_left: 1, revoked_at: null },
  ] as never);
  await renderPart(<TokensTable onNew={() => {}} />);
  const table = within(await screen.findByRole('grid', { name: 'Enrollment tokens' }));
  const cells = table.getAllByRole('gridcell').map(({ textContent }) => textContent);
  expect(cells.slice(0, 3)).toEqual(['web-9', 'role=web+1', 'valid']);
  expect(table.getByTitle('site=paris').textContent).toBe('+1');
});

test('distinguishes tokens for any machine by their IDs, also before one is revoked', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators);
  const [token] = listEnrolmentTokens.example.answer as never as [EnrolmentToken];
  const expires_at = Math.floor(Date.now() / 1000) + 3_600;
  const id = (end: string) => `${token.id.slice(0, -8)}${end}`;
  const valid = { ...token, name: null, expires_at, uses_left: 1, revoked_at: null };
  api.answer(listEnrolmentTokens, [
    { ...valid, id: id('AAAA0001') },
    { ...valid, id: id('AAAA0002') },
  ] as never);
  const { user } = await renderPart(<TokensTable onNew={() => {}} />);
  expect(await screen.findByText('…AAAA0001')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: /the token …AAAA0002 for any machine/ }));
  await user.click(screen.getByRole('menuitem', { name: 'Revoke…' }));
  const dialog = screen.getByRole('alertdialog', { name: 'Revoke the token …AAAA0002?' });
  expect(dialog.textContent).toContain('It is for any machine, and was created');
});
