import { screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Input } from '../form/field.tsx';
import { FormDialog } from './form-dialog.tsx';

async function open(props: { invalid?: boolean; request?: { isPending: boolean; error: unknown } } = {}) {
  fakeApi();
  const onSubmit = vi.fn();
  const onClose = vi.fn();
  const rendered = await renderPart(
    <FormDialog
      title="Add a tag"
      action="Add"
      request={{ isPending: false, error: null }}
      onSubmit={onSubmit}
      onClose={onClose}
      {...props}
    >
      <Input label="Tag" required autoFocus />
    </FormDialog>,
  );
  return { ...rendered, onSubmit, onClose };
}

test('submits the form when Enter is pressed in a field', async () => {
  const { user, onSubmit, onClose } = await open();
  await user.type(screen.getByLabelText('Tag'), 'role{Enter}');
  expect(onSubmit).toHaveBeenCalledTimes(1);
  expect(onClose).not.toHaveBeenCalled();
});

test('does not submit an invalid form', async () => {
  const { user, onSubmit } = await open({ invalid: true });
  await user.type(screen.getByLabelText('Tag'), 'role{Enter}');
  await user.click(screen.getByRole('button', { name: 'Add' }));
  expect(onSubmit).not.toHaveBeenCalled();
});

test('shows the error of the last attempt, and closes on Cancel', async () => {
  const { user, onSubmit, onClose } = await open({ request: { isPending: false, error: new Error('taken') } });
  expect(screen.getByRole('alert').textContent).toBe('taken');
  await user.click(screen.getByRole('button', { name: 'Cancel' }));
  expect(onClose).toHaveBeenCalledTimes(1);
  expect(onSubmit).not.toHaveBeenCalled();
});
