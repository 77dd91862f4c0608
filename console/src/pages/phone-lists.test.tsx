import {
  type Agent,
  type Channel,
  listAgents,
  listChannels,
  listReconcile,
  listWindows,
  matchSelector,
  type OffAgent,
  type Window,
} from '@muster/protocol/http';
import { cleanup, screen, within } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, onTestFinished, test, vi } from 'vitest';

/** Simulates a phone. Loads the modules again, because the other tests simulate a wide screen. */
async function onPhone() {
  vi.resetModules();
  vi.doMock('../parts/table/screen-widths.ts', () => ({ useHiddenWidths: () => 'sm md lg xl 2xl' }));
  onTestFinished(() => {
    vi.doUnmock('../parts/table/screen-widths.ts');
    vi.resetModules();
  });
  const { fakeApi } = await import('../../test/fake-api.ts');
  return { api: fakeApi(), ...(await import('../../test/render.tsx')) };
}

/** Renders a page's columns on a phone. */
async function render(row: (parts: typeof import('../parts/table/data-table.tsx')) => Promise<ReactNode>) {
  const { renderPart } = await onPhone();
  await renderPart(await row(await import('../parts/table/data-table.tsx')));
  const [, only] = screen.getAllByRole('row');
  return within(only as HTMLElement);
}

const cells = (row: Awaited<ReturnType<typeof render>>) =>
  row.getAllByRole('gridcell').map(({ textContent }) => textContent);
const none = { open: new Set<string>(), onToggle: () => {}, isPhone: true };

test('shows an agent that is out of sync with its first issue and a menu of its actions', async () => {
  const agents = listReconcile.example.answer as never as OffAgent[];
  const row = await render(async ({ DataTable }) => {
    const { offColumns } = await import('./reconcile/off-columns.tsx');
    return (
      <DataTable
        label="Out of sync"
        rows={[{ key: 'web-1', agents, rank: 0 }]}
        columns={offColumns({ ...none, onDialog: () => {} })}
        rowKey={({ key }) => key}
        details={() => null}
        empty={null}
      />
    );
  });
  expect(cells(row)).toEqual(['web-1', 'apply failed', '/etc/motdmode 0666, expected 0644 · 2 more', '']);
  expect(row.getAllByRole('button').map((each) => each.getAttribute('aria-label') ?? each.textContent)).toEqual([
    'web-1',
    'Actions on web-1',
  ]);
});

test('offers in a menu to check the agents that are out of sync, so that the tools of the list fit one line', async () => {
  const { api, renderPage } = await onPhone();
  api.answerExamples(listReconcile);
  api.answer(matchSelector, { matches: [] });
  const { OutOfSyncPage } = await import('./reconcile/out-of-sync-page.tsx');
  const { user } = await renderPage(OutOfSyncPage);
  await user.click(await screen.findByRole('button', { name: 'More' }));
  await user.click(screen.getByRole('menuitem', { name: 'Check now…' }));
  expect(await screen.findByRole('dialog', { name: 'Check 1 agent for drift' })).toBeTruthy();
});

test('truncates a long path in the middle, and shows the whole path of an open row', async () => {
  const identity = '/etc/systemd/system/multi-user.target.wants/nginx-exporter.service';
  const [off] = listReconcile.example.answer as never as [OffAgent];
  const [drift] = off.drift as [OffAgent['drift'][number]];
  const agents = [{ ...off, drift: [{ ...drift, examples: drift.examples.map((each) => ({ ...each, identity })) }] }];
  const show = (open: ReadonlySet<string>) =>
    render(async ({ DataTable }) => {
      const { offColumns } = await import('./reconcile/off-columns.tsx');
      return (
        <DataTable
          label="Out of sync"
          rows={[{ key: 'web-1', agents, rank: 0 }]}
          columns={offColumns({ ...none, open, onDialog: () => {} })}
          rowKey={({ key }) => key}
          details={() => null}
          empty={null}
        />
      );
    });
  const closed = await show(new Set());
  expect(closed.getByText('nginx-exporter.service').previousElementSibling?.className).toContain('truncate');
  cleanup();
  const open = await show(new Set(['web-1']));
  expect(open.queryByText('nginx-exporter.service')).toBeNull();
  expect(cells(open)[2]).toContain(identity);
});

test.each([
  [true, ['web-1', '', 'connected', 'in sync', 'role=web', '']],
  [false, ['web-1', 'seen 4m ago', 'offline', 'in sync', 'role=web', '']],
])('shows the state, the tags, and the last contact of an agent (connected: %s)', async (connected, shown) => {
  const [agent] = listAgents.example.answer as never as [Agent];
  const last_seen_at = Math.floor(Date.now() / 1000) - 250;
  const row = await render(async ({ DataTable }) => {
    const { agentColumns } = await import('./agents/agent-columns.tsx');
    const sync = { off: new Map(), neverApplied: new Set<string>() };
    return (
      <DataTable
        label="Agents"
        rows={[{ ...agent, name: 'web-1', connected, last_seen_at, status: 'approved', tags: { role: 'web' } }]}
        columns={agentColumns({ samples: {}, sync, isPhone: true, onDialog: () => {} })}
        rowKey={({ node_id }) => node_id}
        empty={null}
      />
    );
  });
  expect(cells(row)).toEqual(shown);
  // The state of an agent that is offline is not known.
  expect(row.queryByTitle('when last seen') === null).toBe(connected);
});

const failing: Channel = {
  ...(listChannels.example.answer as never as [Channel])[0],
  delivery: {
    ...{ last_delivered_at: null, last_error: 'the receiver answered 500', failures: 7 },
    ...{ failing_since: Math.floor(Date.now() / 1000) - 4 * 3_600, next_attempt_at: null },
  },
};

test('shows since when a channel has been failing, and why', async () => {
  const row = await render(async ({ DataTable }) => {
    const { channelColumns } = await import('./channels/channel-columns.tsx');
    return (
      <DataTable
        label="Channels"
        rows={[failing]}
        columns={channelColumns({ ...none, testing: null, actions: null })}
        rowKey={({ id }) => id}
        details={() => null}
        empty={null}
      />
    );
  });
  expect(cells(row)[2]).toBe('failingfor 4hthe receiver answered 500');
  expect(row.getByText('the receiver answered 500').className).not.toContain('hidden');
});

test('shows a channel on two lines, with its actions in a menu', async () => {
  const row = await render(async ({ DataTable }) => {
    const { channelColumns } = await import('./channels/channel-columns.tsx');
    const actions = { onTest: () => {}, onEdit: () => {}, onRemove: () => {} };
    return (
      <DataTable
        label="Channels"
        rows={listChannels.example.answer as never as Channel[]}
        columns={channelColumns({ ...none, testing: null, actions })}
        rowKey={({ id }) => id}
        details={() => null}
        empty={null}
      />
    );
  });
  expect(cells(row)).toEqual(['on-call', 'Webhook', 'working', '']);
  expect(row.getByRole('button', { name: 'Actions on on-call' })).toBeTruthy();
});

test.each([
  ['site=paris', 'site=paris'],
  [null, 'all agents'],
])('shows a maintenance window with the selector %s on two lines, with its agents', async (selector, agents) => {
  const [window] = listWindows.example.answer as never as [Window];
  const row = await render(async ({ DataTable }) => {
    const { windowColumns } = await import('./windows/window-columns.tsx');
    return (
      <DataTable
        label="Maintenance windows"
        rows={[{ ...window, selector }]}
        columns={windowColumns({ ...none, now: window.starts_at * 1000 + 1, onAction: () => {} })}
        rowKey={({ id }) => id}
        empty={null}
      />
    );
  });
  expect(cells(row)).toEqual([window.reason, expect.stringMatching(/^open/), expect.stringContaining('–'), agents, '']);
  // Tailwind hides elements with this class on a phone.
  expect(row.getByText(agents).closest('[class~="max-sm:hidden"]')).toBeNull();
});
