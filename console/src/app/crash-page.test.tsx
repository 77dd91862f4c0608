import { screen, within } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import { renderPage } from '../../test/render.tsx';
import { CrashPage } from './crash-page.tsx';

test('offers to render a page again that failed, or to go to the overview', async () => {
  fakeApi();
  const reset = vi.fn();
  const { user, address } = await renderPage(
    () => <CrashPage error={new Error('the row has no name')} reset={reset} />,
    {
      path: '/agents',
    },
  );
  const alert = within(screen.getByRole('alert'));
  expect(alert.getByText('the row has no name')).toBeTruthy();
  await user.click(alert.getByRole('button', { name: 'Try again' }));
  expect(reset).toHaveBeenCalledOnce();
  await user.click(alert.getByRole('link', { name: 'Go to the overview' }));
  expect(address()).toBe('/');
});
