import { logout, openConsoleSession, redeemWebLogin } from '@muster/protocol/http';
import { screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import { renderPage } from '../../test/render.tsx';
import { session } from '../api/client.ts';
import { useSession } from '../api/sign-in/use-session.ts';
import { ExpiredSessionDialog, SignInLinkDialog } from './session-dialogs.tsx';
import { followSignInLinks } from './sign-in-link.ts';

vi.mock('../api/sign-in/session-cookie.ts', () => ({ acceptsCookies: () => true }));

const answer = openConsoleSession.example.answer;
const bob = { operator_id: 'b'.repeat(32), username: 'bob', role: 'operator' } as const;

/** The dialogs over a page, as in gate.tsx. */
function Page() {
  const state = useSession();
  if (state.status === 'signed_out') return null;
  if (state.status === 'expired') return <ExpiredSessionDialog {...state} />;
  return <SignInLinkDialog person={state.person} />;
}

/** Opens bob's sign-in link in a browser in which ada is signed in. */
async function openLink() {
  const api = fakeApi();
  api.answer(redeemWebLogin, { ...redeemWebLogin.example.answer, operator: bob });
  const { user } = await renderPage(Page);
  window.location.hash = '#code=code';
  followSignInLinks();
  const signIn = await screen.findByRole('button', { name: 'Sign in' });
  return { api, accept: () => user.click(signIn) };
}
const isDisabled = (name: string) => screen.getByRole<HTMLButtonElement>('button', { name }).disabled;

test('shows the confirmation until the session of the link begins', async () => {
  const { api, accept } = await openLink();
  const { promise, resolve } = Promise.withResolvers<typeof answer>();
  api.answer(openConsoleSession, () => promise);
  await accept();
  expect([isDisabled('Sign in'), isDisabled('Cancel')]).toEqual([true, true]);
  resolve(answer);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(session.state()).toEqual({ status: 'live', person: bob });
});

test('keeps the token in a browser that could not use the cookie', async () => {
  const { api, accept } = await openLink();
  api.refuse(openConsoleSession, 'origin_refused', 'the browser does not confirm its origin');
  await accept();
  await waitFor(() => expect(session.state()).toEqual({ status: 'live', person: bob }));
  expect(await session.credential()).toMatchObject({ kind: 'token', token: redeemWebLogin.example.answer.token });
});

test('shows why the session of the link did not begin', async () => {
  const { api, accept } = await openLink();
  api.refuse(openConsoleSession, 'storage_unavailable', 'the database does not answer');
  await accept();
  expect((await screen.findByRole('alert')).textContent).toContain('the database does not answer');
  expect(session.state()).toMatchObject({ status: 'expired', person: { username: 'ada' } });
  expect(api.received(logout)).toHaveLength(2);
});
