import { render, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { dismissConfirmations, notify, notifyError, Toaster } from './toast.tsx';

test('shows a toast', async () => {
  render(<Toaster theme="light" />);
  notify('Saved the module.');
  expect(await screen.findByText('Saved the module.')).toBeTruthy();
});

test('capitalizes the first letter of an error', async () => {
  render(<Toaster theme="light" />);
  notifyError(new Error('the agent is offline'));
  expect(await screen.findByText('The agent is offline')).toBeTruthy();
});

test('shows no toast of an earlier test', async () => {
  render(<Toaster theme="light" />);
  notify('Saved the assignment.');
  expect(await screen.findByText('Saved the assignment.')).toBeTruthy();
  expect(screen.queryByText('Saved the module.')).toBeNull();
});

test('shows toasts above dialogs, in the font of the console', async () => {
  render(<Toaster theme="light" />);
  notify('Approved');
  const toaster = (await screen.findByText('Approved')).closest<HTMLElement>('[data-sonner-toaster]');
  expect(toaster?.dataset).toMatchObject({ yPosition: 'top', xPosition: 'center' });
  expect(toaster?.style.fontFamily).toBe('var(--sans)');
});

test('dismisses the confirmation of an earlier action, but no new one and no error', async () => {
  render(<Toaster theme="light" />);
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 5_000);
  notify('Command copied');
  await screen.findByText('Command copied');
  clock.mockRestore();
  notify('Saved the module.');
  notifyError(new Error('the agent is offline'));
  await screen.findByText('Saved the module.');
  await screen.findByText('The agent is offline');
  dismissConfirmations();
  await waitFor(() => expect(screen.queryByText('Command copied')).toBeNull());
  expect(screen.getByText('Saved the module.')).toBeTruthy();
  expect(screen.getByText('The agent is offline')).toBeTruthy();
});
