import { fireEvent, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import * as keys from '../../test/keys.ts';
import { renderPage } from '../../test/render.tsx';
import { SignInPage } from './sign-in-page.tsx';

async function open() {
  fakeApi();
  return await renderPage(SignInPage);
}
const files = (...files: File[]) => ({ dataTransfer: { types: ['Files'], files } });

test('asks for the passphrase of a pasted key that is encrypted', async () => {
  const { user } = await open();
  await user.click(screen.getByRole('button', { name: 'paste its text' }));
  expect((screen.getByRole('button', { name: 'Use this key' }) as HTMLButtonElement).disabled).toBe(true);
  await user.click(screen.getByRole('textbox', { name: 'Private key' }));
  await user.paste(keys.musterSealed);
  await user.click(screen.getByRole('button', { name: 'Use this key' }));
  expect(await screen.findByLabelText('Passphrase of the pasted key')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Use another key' }));
  expect(screen.getByRole('button', { name: 'Open key file' })).toBeTruthy();
});

test('keeps pasted text that is not a key', async () => {
  const { user } = await open();
  await user.click(screen.getByRole('button', { name: 'paste its text' }));
  await user.type(screen.getByRole('textbox', { name: 'Private key' }), 'not a key');
  await user.click(screen.getByRole('button', { name: 'Use this key' }));
  await screen.findByRole('alert');
  expect((screen.getByRole('textbox', { name: 'Private key' }) as HTMLTextAreaElement).value).toBe('not a key');
});

test('discards a pasted key when the operator cancels', async () => {
  const { user } = await open();
  await user.click(screen.getByRole('button', { name: 'paste its text' }));
  await user.type(screen.getByRole('textbox', { name: 'Private key' }), 'secret');
  await user.click(screen.getByRole('button', { name: 'Cancel' }));
  await user.click(screen.getByRole('button', { name: 'paste its text' }));
  expect((screen.getByRole('textbox', { name: 'Private key' }) as HTMLTextAreaElement).value).toBe('');
});

test('reads a key file that is dropped anywhere on the page', async () => {
  await open();
  const isTaken = !fireEvent.drop(window, files(new File([keys.musterSealed], 'operator.key')));
  expect(isTaken).toBe(true);
  expect(await screen.findByLabelText('Passphrase of operator.key')).toBeTruthy();
});

test('leaves dragged text to the browser', async () => {
  await open();
  expect(fireEvent.dragOver(window, { dataTransfer: { types: ['text/plain'], files: [] } })).toBe(true);
  expect(fireEvent.dragOver(window, files())).toBe(false);
});

test('refuses a file that is too large for a key', async () => {
  const { user } = await open();
  await user.upload(screen.getByLabelText('Key file'), new File(['x'.repeat(70_000)], 'disk.img'));
  expect((await screen.findByRole('alert')).textContent).not.toBe('');
});
