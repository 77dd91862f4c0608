import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { OverviewSkeleton } from '../pages/overview/overview-skeleton.tsx';
import { PageSkeleton } from '../parts/page.tsx';
import { parseSearch, stringifySearch } from '../parts/url-state.ts';
import { CrashPage } from './crash-page.tsx';
import { Gate } from './gate.tsx';
import { lazyPage } from './lazy-page.tsx';
import { destinations } from './navigation.ts';
import { NotFoundPage } from './not-found-page.tsx';

/**
 * All pages by path. A page's code is loaded on the first visit. A page keeps its state in URL parameters, as plain
 * text (parts/url-state.ts).
 */

const root = createRootRoute({ component: Gate, notFoundComponent: NotFoundPage });

type Search = Record<string, string>;
const textOnly = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));

/** Returns what a page shows while its code is loading. */
function skeletonOf(path: string): () => ReactNode {
  if (path === '/') return OverviewSkeleton;
  const title = destinations.find((destination) => destination.path === path)?.label;
  return () => <PageSkeleton title={title} />;
}

const page = <const Path extends string>(path: Path, load: () => Promise<Record<string, unknown>>, name: string) => {
  const skeleton = skeletonOf(path);
  return createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: textOnly,
    component: lazyPage(load, name, skeleton),
    pendingComponent: skeleton,
  });
};

/** Redirects a URL of an earlier release, or another spelling of a path. */
const moved = <const Path extends string>(
  path: Path,
  to: '/out-of-sync' | '/enrolment',
  searchOf: (search: Search) => Search = (search) => search,
) =>
  createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: textOnly,
    beforeLoad: ({ search }) => {
      throw redirect({ to, search: searchOf(search as Search) as never, replace: true });
    },
  });

const routeTree = root.addChildren([
  page('/', () => import('../pages/overview/overview-page.tsx'), 'OverviewPage'),
  // The gate redirects signed-in operators. Before that, the page is empty and sends no queries.
  page('/login', async () => ({ EmptyPage: () => null }), 'EmptyPage'),
  page('/agents', () => import('../pages/agents/agents-page.tsx'), 'AgentsPage'),
  page('/agents/$agent', () => import('../pages/agents/agent-page.tsx'), 'AgentPage'),
  page('/out-of-sync', () => import('../pages/reconcile/out-of-sync-page.tsx'), 'OutOfSyncPage'),
  page('/modules', () => import('../pages/modules/modules-page.tsx'), 'ModulesPage'),
  page('/modules/new', () => import('../pages/modules/new-module-page.tsx'), 'NewModulePage'),
  page('/modules/$module', () => import('../pages/modules/module-page.tsx'), 'ModulePage'),
  page('/assignments', () => import('../pages/assignments/assignments-page.tsx'), 'AssignmentsPage'),
  page('/assignments/new', () => import('../pages/assignments/assignment-page.tsx'), 'NewAssignmentPage'),
  page('/assignments/$assignment', () => import('../pages/assignments/assignment-page.tsx'), 'AssignmentPage'),
  page('/runs', () => import('../pages/runs/runs-page.tsx'), 'RunsPage'),
  page('/runs/$run', () => import('../pages/runs/run-page.tsx'), 'RunPage'),
  page('/operations', () => import('../pages/operations/operations-page.tsx'), 'OperationsPage'),
  page('/operations/$operation', () => import('../pages/operations/operation-page.tsx'), 'OperationPage'),
  page('/drift/$record', () => import('../pages/drift/drift-record-page.tsx'), 'DriftRecordPage'),
  page('/terminals', () => import('../pages/terminals/terminals-page.tsx'), 'TerminalsPage'),
  page('/terminals/new/$agent', () => import('../pages/terminals/terminal-page.tsx'), 'NewTerminalPage'),
  page('/terminals/$session', () => import('../pages/terminals/terminal-page.tsx'), 'TerminalPage'),
  page('/secrets', () => import('../pages/secrets/secrets-page.tsx'), 'SecretsPage'),
  page('/kinds', () => import('../pages/kinds/kinds-page.tsx'), 'KindsPage'),
  page('/kinds/$kind', () => import('../pages/kinds/kind-page.tsx'), 'KindPage'),
  page('/windows', () => import('../pages/windows/windows-page.tsx'), 'WindowsPage'),
  page('/notifications', () => import('../pages/notifications/notifications-page.tsx'), 'NotificationsPage'),
  page('/channels', () => import('../pages/channels/channels-page.tsx'), 'ChannelsPage'),
  page('/audit', () => import('../pages/audit/audit-page.tsx'), 'AuditPage'),
  page('/operators', () => import('../pages/operators/operators-page.tsx'), 'OperatorsPage'),
  page('/sessions', () => import('../pages/sessions/sessions-page.tsx'), 'SessionsPage'),
  page('/enrolment', () => import('../pages/enrollment/enrollment-page.tsx'), 'EnrollmentPage'),
  moved('/enrollment', '/enrolment'),
  moved('/reconcile', '/out-of-sync', ({ accepted, ...search }) =>
    accepted === 'yes' ? { ...search, tab: 'accepted' } : search,
  ),
  moved('/drift', '/out-of-sync', (search) => ({ ...search, tab: 'checks' })),
  page('/settings', () => import('../pages/settings/settings-page.tsx'), 'SettingsPage'),
]);

export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  defaultPendingMs: 150,
  defaultPendingComponent: () => <PageSkeleton />,
  defaultErrorComponent: ({ error, reset }) => <CrashPage error={error as Error} reset={reset} />,
  scrollRestoration: true,
  parseSearch,
  stringifySearch,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
