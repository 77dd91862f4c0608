import { screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { FanOutDialog } from './fan-out-form.tsx';

async function renderDialog(onStart: (options: object) => Promise<unknown>) {
  fakeApi();
  const onOpenChange = vi.fn();
  const rendered = await renderPart(
    <FanOutDialog
      open
      onOpenChange={onOpenChange}
      title="Apply web"
      action="Apply to 412 agents"
      count={412}
      onStart={onStart}
    />,
  );
  return { ...rendered, onOpenChange };
}
const field = (name: string) => screen.getByRole('textbox', { name });

test('starts a run with the careful preset and closes', async () => {
  const onStart = vi.fn(async () => {});
  const { user, onOpenChange } = await renderDialog(onStart);
  expect(screen.getByText(/^Runs on 1 agent first/)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Apply to 412 agents' }));
  expect(onStart).toHaveBeenCalledWith({ canary: 1, batch: '25%', max_failures: 0, offline: 'report' });
  await waitFor(() => expect(onOpenChange).toHaveBeenCalledWith(false));
});

test('shows the error for an invalid option only after an attempt to start', async () => {
  const onStart = vi.fn(async () => {});
  const { user } = await renderDialog(onStart);
  await user.clear(field('At a time'));
  await user.type(field('At a time'), 'half');
  expect(screen.getByText('Correct the options above.')).toBeTruthy();
  expect(screen.queryByText(/^Enter a number of agents/)).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Apply to 412 agents' }));
  expect(screen.getByText(/^Enter a number of agents/)).toBeTruthy();
  expect(onStart).not.toHaveBeenCalled();
});

test('asks how long to wait only if the run waits for disconnected agents', async () => {
  const { user } = await renderDialog(async () => {});
  expect(screen.queryByRole('textbox', { name: 'Wait up to' })).toBeNull();
  await user.selectOptions(screen.getByRole('combobox'), 'queue');
  expect(field('Wait up to')).toBeTruthy();
});

test('stays open and shows the error if the run is refused', async () => {
  const { user, onOpenChange } = await renderDialog(async () => {
    throw new Error('the plan has expired');
  });
  await user.click(screen.getByRole('radio', { name: /All at once/ }));
  await user.click(screen.getByRole('button', { name: 'Apply to 412 agents' }));
  expect((await screen.findByRole('alert')).textContent).toBe('the plan has expired');
  expect(onOpenChange).not.toHaveBeenCalled();
});
