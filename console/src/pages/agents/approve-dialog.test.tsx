import { type Agent, listAgents } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { ApproveDialog } from './approve-dialog.tsx';

const [example] = listAgents.example.answer as never as [Agent];
const pending = (hostname: string): Agent => ({
  ...{ ...example, node_id: hostname.padEnd(32, '0'), name: null, status: 'pending', initial_hostname: hostname },
  ...{ attributes: { distro: 'debian', version: '12' }, connected_at: Math.floor(Date.now() / 1000) - 130 },
});

test('lists agents by hostname, with their systems and the times of their connections', async () => {
  fakeApi();
  const agents = ['kiosk-16', 'db-1', 'kiosk-2'].map(pending);
  await renderPart(<ApproveDialog agents={agents} all={agents} onClose={() => {}} />);
  const rows = within(screen.getByRole('group', { name: 'Agents' })).getAllByRole('listitem');
  expect(rows.map((row) => within(row).getByRole('textbox').getAttribute('aria-label'))).toEqual(
    ['db-1', 'kiosk-2', 'kiosk-16'].map((name) => `Name of ${name}`),
  );
  expect(rows[0]?.textContent).toContain('debian 12,connected 2m ago');
});
