import type { ResourceResult } from '@muster/protocol';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Output } from './output.tsx';
import { ResourceResults } from './resource-results.tsx';
import { durationText } from './resource-row.tsx';

const result = (over: Partial<ResourceResult>): ResourceResult => ({
  ...{ module: 'web', id: null, type: 'file', identity: '/etc/x', action: 'none', status: 'unchanged' },
  ...{ changes: [], diff: null, triggered_by: [], corrective: false, message: null, duration_ms: 0, sensitive: false },
  ...over,
});
const results = [
  result({ identity: '/etc/motd', status: 'changed', action: 'update', diff: '@@ -1 +1 @@\n-old\n+new\n' }),
  result({ identity: '/etc/issue' }),
  result({ identity: '/etc/hosts' }),
  result({ module: 'db', type: 'user', identity: 'app', status: 'failed', action: 'create', message: 'no such group' }),
];
const row = (name: RegExp) =>
  screen.getAllByRole('button', { name }).find((button) => button.hasAttribute('aria-expanded')) as HTMLElement;

test('shows the given placeholder if there are no results', async () => {
  fakeApi();
  await renderPart(<ResourceResults results={[]} resultKind="apply" empty={<p>No result yet</p>} />);
  expect(screen.getByText('No result yet')).toBeTruthy();
});

test('groups results by module, expands changes and failures, and folds unchanged resources', async () => {
  fakeApi();
  const { user } = await renderPart(<ResourceResults results={results} resultKind="apply" running />);
  expect(screen.getAllByRole('heading', { level: 3 }).map(({ textContent }) => textContent)).toEqual([
    'web1 changed3 resources',
    'db1 failed1 resource',
  ]);
  expect(screen.getByText('no such group')).toBeTruthy();
  expect(screen.getByRole('group', { name: 'Changes of /etc/motd' }).textContent).toContain('new');
  expect(screen.getByText(/^More results appear here/)).toBeTruthy();
  expect(screen.queryByText('/etc/hosts')).toBeNull();
  await user.click(row(/2 unchanged/));
  expect(screen.getByText('/etc/hosts')).toBeTruthy();
});

test('offers no filter if all resources have changed', async () => {
  fakeApi();
  const changed = results.slice(0, 1);
  const more = result({ identity: '/etc/hostname', status: 'changed', action: 'update', diff: '+a\n' });
  await renderPart(<ResourceResults results={[...changed, more]} resultKind="drift" />);
  expect(screen.getByRole('button', { name: 'Collapse all' })).toBeTruthy();
  expect(screen.queryByRole('group', { name: 'Which resources' })).toBeNull();
});

test('filters the results and stores the filter in the URL', async () => {
  fakeApi();
  const { user, address } = await renderPart(<ResourceResults results={results} resultKind="apply" />);
  await user.click(screen.getByRole('button', { name: /^Failed/ }));
  expect(screen.queryByText('/etc/motd')).toBeNull();
  expect(screen.getByText('app')).toBeTruthy();
  expect(address()).toBe('/?show=failed');
});

test('shows that no result failed', async () => {
  fakeApi();
  const { user } = await renderPart(
    <ResourceResults results={[result({}), result({ identity: '/etc/y' })]} resultKind="apply" />,
  );
  await user.click(screen.getByRole('button', { name: /^Failed/ }));
  expect(screen.getByText('Nothing failed')).toBeTruthy();
});

test("collapses and expands a resource's details, and links to a line in its diff", async () => {
  fakeApi();
  const { user, address } = await renderPart(<ResourceResults results={results} resultKind="plan" />);
  await user.click(row(/motd/));
  expect(screen.queryByRole('group', { name: 'Changes of /etc/motd' })).toBeNull();
  await user.click(row(/motd/));
  const diff = within(screen.getByRole('group', { name: 'Changes of /etc/motd' }));
  const [before] = diff.getAllByRole('button', { name: 'Link to line 1' });
  await user.click(before as HTMLElement);
  expect(address()).toBe('/#r=web//etc/motd&B1');
  expect(diff.getAllByRole('row').filter((line) => line.getAttribute('aria-current'))).toHaveLength(1);
});

test('makes hidden characters in a type and an identity visible, and keeps both on one line', async () => {
  fakeApi();
  const hostile = result({ type: 'file\u202e\nx', identity: '/etc/\u202e\nx', diff: '@@ -1 +1 @@\n-a\n+b\n' });
  await renderPart(<ResourceResults results={[{ ...hostile, status: 'changed' }]} resultKind="apply" />);
  expect(screen.getByText('file⟨202E⟩ x')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Link to file⟨202E⟩ x /etc/⟨202E⟩ x' })).toBeTruthy();
  expect(screen.getByRole('group', { name: 'Changes of /etc/⟨202E⟩ x' })).toBeTruthy();
});

test('shows the output of a running script before its resource has a result', async () => {
  fakeApi();
  const output = {
    'web/deploy': { stdout: 'step 1\n', stderr: '', exit_code: null, truncated: false, running: true as const },
  };
  await renderPart(<ResourceResults results={[]} resultKind="apply" output={output} />);
  expect(screen.getByRole('heading', { name: 'web/deploy' })).toBeTruthy();
  expect(screen.getByRole('group', { name: 'Standard output' }).textContent).toContain('step 1');
  expect(screen.getByText('Running.')).toBeTruthy();
});

test('shows output as numbered plain-text lines', async () => {
  fakeApi();
  await renderPart(<Output text={'\x1b[31mred\x1b[0m\n<b>\n'} label="Output" truncated />);
  const lines = [...screen.getByRole('group', { name: 'Output' }).querySelectorAll('bdi')];
  expect(lines.map(({ textContent }) => textContent)).toEqual(['red', '<b>']);
  expect(screen.getByText('2 lines')).toBeTruthy();
  expect(screen.getByText(/^The output exceeded/)).toBeTruthy();
});

test('follows running output until the reader turns it off', async () => {
  fakeApi();
  const { user } = await renderPart(<Output text={'a\n'} label="Output" running />);
  await user.click(screen.getByRole('button', { name: 'Following', pressed: true }));
  expect(screen.getByRole('button', { name: 'Follow', pressed: false })).toBeTruthy();
});

test.each([
  [0, ''],
  [12, '12ms'],
  [1_000, '1s'],
  [2_340, '2.3s'],
  [119_700, '1m 59s'],
  [180_000, '3m'],
  [7_380_000, '2h 3m'],
  [7_200_000, '2h'],
])('formats %d milliseconds as "%s"', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
