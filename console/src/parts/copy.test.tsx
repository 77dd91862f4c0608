import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import { renderPart } from '../../test/render.tsx';
import { Code, Id } from './copy.tsx';

test('copies a command with a button that shows its label', async () => {
  fakeApi();
  const { user } = await renderPart(<Code text="muster web-login" />);
  const button = screen.getByRole('button', { name: 'Copy' });
  expect(button.textContent).toBe('Copy');
  await user.click(button);
  expect(await screen.findByRole('button', { name: 'Copied' })).toBeTruthy();
  expect(await navigator.clipboard.readText()).toBe('muster web-login');
});

test('names the id that a button without a visible label copies', async () => {
  fakeApi();
  await renderPart(<Id id="0123456789abcdef" />);
  expect(screen.getByRole('button', { name: 'Copy 0123456789abcdef' }).textContent).toBe('');
});

test('does not break a command within the name of an option', async () => {
  fakeApi();
  const command = 'curl -fsS https://muster | sh -s -- --orchestrator-key 12-34';
  await renderPart(<Code text={command} />);
  const option = screen.getByText('--orchestrator-key');
  expect(option.className).toContain('whitespace-nowrap');
  expect(option.closest('code')?.textContent).toBe(command);
});
