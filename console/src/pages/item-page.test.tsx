import { ApiError } from '@muster/protocol/client';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import { renderPart } from '../../test/render.tsx';
import { ItemPage, LoadedItem, ReportSkeleton } from './item-page.tsx';

const refused = (status: number) =>
  new ApiError({
    ...{ type: 'about:blank', title: 'Refused', status, code: 'refused', instance: '' },
    detail: 'the orchestrator refused this',
  });

/** Renders the page of a module in a state of its query. */
async function render(query: { data?: string; error?: unknown }) {
  fakeApi();
  return await renderPart(
    <LoadedItem
      of="module"
      title="motd"
      query={{ data: query.data, error: query.error ?? null, refetch: () => {} }}
      skeleton={<ReportSkeleton />}
    >
      {(text) => (
        <ItemPage of="module" title="motd" under={[<span key="under">below</span>]} banner={<p>a banner</p>}>
          {text}
        </ItemPage>
      )}
    </LoadedItem>,
  );
}

const crumbs = () => within(screen.getByRole('navigation', { name: 'Breadcrumb' }));

test.each([
  ['is loading', {}],
  ['does not exist', { error: refused(404) }],
  ['cannot be loaded', { error: refused(500) }],
  ['is loaded', { data: 'the text' }],
])('links an item that %s to its list', async (_, query) => {
  const { user, address } = await render(query);
  expect(screen.getByRole('heading', { level: 1, name: 'motd' })).toBeTruthy();
  await user.click(crumbs().getByRole('link', { name: 'Modules' }));
  expect(address()).toBe('/modules');
});

test('announces once that an item is loading', async () => {
  await render({});
  expect(screen.getAllByRole('status').map((each) => each.getAttribute('aria-label'))).toEqual(['Loading the module']);
});

test('explains why an item may not exist, and offers the list', async () => {
  await render({ error: refused(404) });
  const alert = within(screen.getByRole('alert'));
  expect(alert.getByText('Module not found')).toBeTruthy();
  expect(alert.getByText(/It may have been removed/)).toBeTruthy();
  expect(alert.getByRole('link', { name: 'All modules' })).toBeTruthy();
});

test('offers to load an item again after an error, or to go back to its list', async () => {
  await render({ error: refused(500) });
  const alert = within(screen.getByRole('alert'));
  expect(alert.getByText('the orchestrator refused this')).toBeTruthy();
  expect(alert.getByRole('button', { name: 'Try again' })).toBeTruthy();
  expect(alert.getByRole('link', { name: 'All modules' })).toBeTruthy();
});

test('shows the banner of an item before its content', async () => {
  await render({ data: 'the text' });
  expect(crumbs().getByText('below')).toBeTruthy();
  const banner = screen.getByText('a banner');
  expect(banner.compareDocumentPosition(screen.getByText('the text'))).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
});
