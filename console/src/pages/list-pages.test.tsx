import {
  getOverview,
  latestSamples,
  listAgents,
  listAssignments,
  listAudit,
  listChannels,
  listEnrolmentTokens,
  listKinds,
  listLatestDrift,
  listModules,
  listNotifications,
  listOperations,
  listOperators,
  listReconcile,
  listRuns,
  listSecrets,
  listSessions,
  listTags,
  listTerminals,
  listWindows,
  matchSelector,
  type Route,
} from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import type { ReactNode } from 'react';
import { describe, expect, test } from 'vitest';
import { type FakeApi, fakeApi } from '../../test/fake-api.ts';
import { renderPage } from '../../test/render.tsx';
import { AgentsPage } from './agents/agents-page.tsx';
import { AssignmentsPage } from './assignments/assignments-page.tsx';
import { AuditPage } from './audit/audit-page.tsx';
import { ChannelsPage } from './channels/channels-page.tsx';
import { DriftChecks } from './drift/drift-checks.tsx';
import { EnrollmentPage } from './enrollment/enrollment-page.tsx';
import { KindsPage } from './kinds/kinds-page.tsx';
import { ModulesPage } from './modules/modules-page.tsx';
import { NotificationsPage } from './notifications/notifications-page.tsx';
import { OperationsPage } from './operations/operations-page.tsx';
import { OperatorsPage } from './operators/operators-page.tsx';
import { OutOfSyncPage } from './reconcile/out-of-sync-page.tsx';
import { RunsPage } from './runs/runs-page.tsx';
import { SecretsPage } from './secrets/secrets-page.tsx';
import { SessionsPage } from './sessions/sessions-page.tsx';
import { TerminalsPage } from './terminals/terminals-page.tsx';
import { WindowsPage } from './windows/windows-page.tsx';

/** All list pages share these four states: loading, error, empty, and full. */
interface Case {
  readonly name: string;
  readonly Page: () => ReactNode;
  /** The route that returns the list. Its example response is the full list. */
  readonly route: Route;
  readonly none: unknown;
  /** Text that the page shows for an empty list. */
  readonly empty: string;
  /** Text that the page shows for the full list. */
  readonly full: string;
  /** Role and accessible name of the list element. */
  readonly list: readonly ['grid' | 'list', string];
  /** Name of the link or button of the empty list. Absent if the list is never empty in practice. */
  readonly action?: string;
  /** A search without matches, and the text that the page then shows. */
  readonly noMatch?: readonly [search: string, text: string];
}

const cases: readonly Case[] = [
  {
    ...{
      name: 'operations',
      action: 'All agents',
      Page: OperationsPage,
      route: listOperations,
      none: { operations: [], limit: 100, offset: 0, has_more: false, next_cursor: null },
    },
    ...{ empty: 'No operations yet', full: 'succeeded', list: ['grid', 'Operations'] },
    noMatch: ['?status=failed', 'No matching operations'],
  },
  {
    ...{
      name: 'runs',
      action: 'All assignments',
      Page: RunsPage,
      route: listRuns,
      none: [],
      empty: 'No runs yet',
      full: 'base',
    },
    ...{ list: ['grid', 'Runs'], noMatch: ['?assignment=x', 'No matching runs'] },
  },
  {
    ...{
      name: 'drift',
      action: 'All agents',
      Page: DriftChecks,
      route: listLatestDrift,
      none: [],
      empty: 'No checks yet',
      full: 'drifted',
    },
    ...{ list: ['grid', 'Drift of each agent'], noMatch: ['?filter=role%3Dx', 'No matching agents'] },
  },
  {
    ...{
      name: 'modules',
      action: 'New module',
      Page: ModulesPage,
      route: listModules,
      none: [],
      empty: 'No modules yet',
      full: 'motd',
    },
    ...{ list: ['grid', 'Modules'], noMatch: ['?q=x', 'No matching modules'] },
  },
  {
    ...{
      name: 'assignments',
      action: 'New assignment',
      Page: AssignmentsPage,
      route: listAssignments,
      none: [],
      empty: 'No assignments yet',
    },
    ...{ full: 'base', list: ['grid', 'Assignments'], noMatch: ['?q=x', 'No matching assignments'] },
  },
  {
    ...{
      name: 'secrets',
      action: 'New secret',
      Page: SecretsPage,
      route: listSecrets,
      none: [],
      empty: 'No secrets yet',
    },
    ...{ full: 'db_password', list: ['grid', 'Secrets'], noMatch: ['?q=x', 'No matching secrets'] },
  },
  {
    ...{
      name: 'terminals',
      action: 'Open terminal…',
      Page: TerminalsPage,
      route: listTerminals,
      none: [],
      empty: 'No terminal sessions yet',
    },
    ...{ full: 'open', list: ['grid', 'Terminal sessions'], noMatch: ['?q=x', 'No matching sessions'] },
  },
  {
    ...{ name: 'operators', Page: OperatorsPage, route: listOperators, none: [], empty: 'No operators' },
    ...{ full: 'ada', list: ['grid', 'Operators'] },
  },
  {
    ...{ name: 'sessions', Page: SessionsPage, route: listSessions, none: [], empty: 'No sessions' },
    ...{ full: 'Firefox on Linux', list: ['grid', 'Sessions'] },
  },
  {
    ...{ name: 'enrollment tokens', action: 'New token', Page: EnrollmentPage, route: listEnrolmentTokens, none: [] },
    ...{ empty: 'No tokens yet', full: 'web-2', list: ['grid', 'Enrollment tokens'] },
  },
  {
    ...{
      name: 'agents',
      action: 'Add machine',
      Page: AgentsPage,
      route: listAgents,
      none: [],
      empty: 'No agents yet',
      full: 'web-1',
    },
    ...{ list: ['grid', 'Agents'], noMatch: ['?q=x', 'No matching agents'] },
  },
  {
    ...{
      name: 'audit',
      Page: AuditPage,
      route: listAudit,
      none: { events: [], has_more: false, next_cursor: null },
      empty: 'No events yet',
    },
    ...{ full: 'Agent web-1 approved', list: ['list', 'Events'], noMatch: ['?category=auth', 'No matching events'] },
  },
  {
    ...{
      name: 'notifications',
      action: 'Channels',
      Page: NotificationsPage,
      route: listNotifications,
      empty: 'No notifications yet',
    },
    ...{
      none: { notifications: [], unread_count: 0 },
      full: 'Agent web-1 is offline',
      list: ['list', 'Notifications'],
    },
  },
  {
    ...{
      name: 'agents out of sync',
      Page: OutOfSyncPage,
      route: listReconcile,
      none: [],
      empty: 'Everything is in sync',
    },
    ...{
      full: '/etc/motd: mode 0666, expected 0644',
      list: ['grid', 'Out of sync'],
      noMatch: ['?reason=drifted', 'No matching agents'],
    },
  },
  {
    ...{
      name: 'channels',
      action: 'Add channel',
      Page: ChannelsPage,
      route: listChannels,
      none: [],
      empty: 'No channels yet',
    },
    ...{ full: 'on-call', list: ['grid', 'Channels'], noMatch: ['?q=x', 'No matching channels'] },
  },
  {
    ...{ name: 'kinds', Page: KindsPage, route: listKinds, none: [], empty: 'No kinds', full: 'sysctl' },
    ...{ list: ['grid', 'Kinds'], noMatch: ['?q=x', 'No matching kinds'] },
  },
  {
    ...{
      name: 'windows',
      action: 'New window',
      Page: WindowsPage,
      route: listWindows,
      none: [],
      empty: 'No maintenance windows',
    },
    ...{ full: 'kernel updates in Paris', list: ['grid', 'Maintenance windows'] },
    ...{ noMatch: ['?state=open', 'No matching windows'] },
  },
];

/** Starts an orchestrator that responds to all of the pages' requests except those for their lists. */
function orchestrator(): FakeApi {
  const api = fakeApi();
  api.answerExamples(getOverview, latestSamples, listAgents, listAssignments, listModules, listOperators);
  api.answerExamples(listReconcile, listRuns, listSecrets, listTags);
  api.answer(matchSelector, { matches: [] });
  return api;
}

describe.each(cases)('the page of $name', ({ Page, route, none, empty, action, full, list, noMatch }) => {
  test('shows placeholders while the list loads', async () => {
    orchestrator().hold(route);
    await renderPage(Page);
    expect(screen.getByRole('status', { name: /^Loading/ })).toBeTruthy();
  });

  test('shows an error and retries on request', async () => {
    const api = orchestrator();
    api.refuse(route, 'internal', 'the disk is gone');
    const { user } = await renderPage(Page);
    const alert = (await screen.findByRole('alert')).textContent;
    expect(alert).toContain(' could not be loaded');
    expect(alert).toContain('the disk is gone');
    api.answerExamples(route);
    await user.click(screen.getByRole('button', { name: 'Try again' }));
    expect((await screen.findByRole(list[0], { name: list[1] })).textContent).toContain(full);
  });

  test('shows why the list is empty', async () => {
    orchestrator().answer(route, none as never);
    await renderPage(Page);
    const shown = (await screen.findByText(empty)).parentElement as HTMLElement;
    expect(shown.querySelector('svg')).toBeTruthy();
    const actions = [...shown.querySelectorAll('a, button')].map(({ textContent }) => textContent);
    expect(actions).toEqual(action === undefined ? [] : [action]);
    // The title, and a sentence on what the list is for.
    if (action !== undefined) expect(shown.querySelector('p + div')?.textContent).toMatch(/\.$/);
  });

  test('lists the items that the orchestrator returns', async () => {
    orchestrator().answerExamples(route);
    await renderPage(Page);
    expect((await screen.findByRole(list[0], { name: list[1] })).textContent).toContain(full);
  });

  if (noMatch !== undefined)
    test('shows that no item matches the filters', async () => {
      const [query, text] = noMatch;
      orchestrator().answer(route, none as never);
      await renderPage(Page, { at: `/${query}` });
      const shown = (await screen.findByText(text)).parentElement as HTMLElement;
      expect(shown.querySelector('svg')).toBeTruthy();
      expect(within(shown).getByRole('button', { name: 'Clear filters' })).toBeTruthy();
    });
});
