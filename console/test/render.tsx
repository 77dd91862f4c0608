import type { Role } from '@muster/protocol/http';
import { QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  RouterProvider,
} from '@tanstack/react-router';
import { act, render } from '@testing-library/react';
import { type UserEvent, userEvent } from '@testing-library/user-event';
import type { ReactNode } from 'react';
import { onTestFinished } from 'vitest';
import { session } from '../src/api/client.ts';
import { queryClient } from '../src/api/query-client.ts';
import { Toaster } from '../src/parts/dialog/toast.tsx';
import { parseSearch, stringifySearch } from '../src/parts/url-state.ts';

export const operatorId = '21fe31dfa154a261626bf854046fd227';

export interface Rendered {
  readonly user: UserEvent;
  /** Returns the current URL path and parameters. */
  address(): string;
}

/** Signs in for the duration of this test. */
async function signIn(role: Role): Promise<void> {
  const operator = { operator_id: operatorId, username: 'ada', role };
  await session.begin({ token: 'token', expires_at: Math.floor(Date.now() / 1000) + 3_600, operator });
  onTestFinished(() => session.leave());
}

/**
 * Renders a page, or any component that needs queries or a URL, for a signed-in operator. Call `fakeApi()` first.
 * @param path route pattern of the page, as in app/routes.tsx
 * @param at URL to open
 */
export async function renderPage(
  Page: () => ReactNode,
  { path = '/', at = path, role = 'admin' }: { path?: string; at?: string; role?: Role } = {},
): Promise<Rendered> {
  await signIn(role);
  const root = createRootRoute({ component: Outlet });
  const history = createMemoryHistory({ initialEntries: [at] });
  const router = createRouter({
    ...{ history, parseSearch, stringifySearch },
    routeTree: root.addChildren([
      createRoute({ getParentRoute: () => root, path, component: Page }),
      createRoute({ getParentRoute: () => root, path: '$', component: () => <p>Another page</p> }),
    ]),
  });
  const user = userEvent.setup();
  await act(async () => {
    await router.load();
    render(
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router as never} />
        <Toaster theme="light" />
      </QueryClientProvider>,
    );
  });
  return { user, address: () => history.location.href };
}

/** Renders a component with the same providers as a page. */
export const renderPart = (part: ReactNode): Promise<Rendered> => renderPage(() => part);
