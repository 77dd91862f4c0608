import { screen } from '@testing-library/react';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Dialog } from '../dialog/dialog.tsx';
import { Picker } from './picker.tsx';

const agents = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ value: `id-${index}`, label: `web-${index}`, detail: 'debian' }));

function AgentPicker({ count = 3 }: { count?: number }) {
  const [value, setValue] = useState('');
  return (
    <>
      <Picker label="Agent" options={agents(count)} value={value} onPick={setValue} none="No such agent" />
      <output>{value}</output>
    </>
  );
}
const field = () => screen.getByRole('combobox', { name: 'Agent' }) as HTMLInputElement;
const shownOptions = () => screen.queryAllByRole('option').map(({ textContent }) => textContent);

test('lists options that match the typed text and chooses one on Enter', async () => {
  fakeApi();
  const { user } = await renderPart(<AgentPicker />);
  expect(field().getAttribute('aria-expanded')).toBe('false');
  await user.type(field(), 'web-');
  expect(field().getAttribute('aria-expanded')).toBe('true');
  expect(shownOptions()).toEqual(['web-0debian', 'web-1debian', 'web-2debian']);
  await user.keyboard('{ArrowDown}{ArrowDown}{ArrowDown}{ArrowUp}');
  const active = field().getAttribute('aria-activedescendant') ?? '';
  expect(document.getElementById(active)?.textContent).toBe('web-1debian');
  await user.keyboard('{Enter}');
  expect(screen.getByRole('status').textContent).toBe('id-1');
  expect(field().value).toBe('web-1');
  expect(shownOptions()).toEqual([]);
});

test('lists the options immediately on request, and filters them as the operator types', async () => {
  fakeApi();
  const { user } = await renderPart(
    <Picker isOpenAtFirst label="Agent" options={agents(3)} value="" onPick={() => {}} none="No such agent" />,
  );
  expect(shownOptions()).toHaveLength(3);
  expect(document.activeElement).toBe(field());
  await user.keyboard('web-2');
  expect(shownOptions()).toEqual(['web-2debian']);
});

test('chooses an option on a click', async () => {
  fakeApi();
  const { user } = await renderPart(<AgentPicker />);
  await user.click(field());
  await user.click(screen.getByRole('option', { name: /web-2/ }));
  expect(screen.getByRole('status').textContent).toBe('id-2');
});

test('shows that nothing matches, or the number of additional matches', async () => {
  fakeApi();
  const { user } = await renderPart(<AgentPicker count={60} />);
  await user.click(field());
  expect(screen.getByText('10 more: type to find them')).toBeTruthy();
  await user.type(field(), 'mail');
  expect(screen.getByText('No such agent')).toBeTruthy();
});

test('closes its list on Escape before the dialog around it closes', async () => {
  fakeApi();
  const { user } = await renderPart(
    <Dialog open title="Try a module" onOpenChange={() => {}}>
      <AgentPicker />
    </Dialog>,
  );
  await user.click(field());
  expect(shownOptions()).toHaveLength(3);
  await user.keyboard('{Escape}');
  expect(shownOptions()).toEqual([]);
  expect(screen.getByRole('dialog', { name: 'Try a module' })).toBeTruthy();
});

test('does not choose a disabled option', async () => {
  fakeApi();
  const onPick = vi.fn();
  const options = [{ value: 'a', label: 'web-1', detail: 'offline', disabled: true }];
  const { user } = await renderPart(<Picker isOpenAtFirst {...{ options, onPick }} label="Agent" value="" />);
  const option = screen.getByRole('option', { name: /web-1/ });
  expect(option.getAttribute('aria-disabled')).toBe('true');
  await user.click(option);
  await user.keyboard('{Enter}');
  expect(onPick).not.toHaveBeenCalled();
});
