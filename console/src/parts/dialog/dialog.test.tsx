import { screen } from '@testing-library/react';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Confirm, Dialog } from './dialog.tsx';
import { EachDialog } from './each-dialog.tsx';

function Opened({ persistent = false }: { persistent?: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Open
      </button>
      <Dialog open={open} onOpenChange={setOpen} title="Add a tag" persistent={persistent}>
        <input aria-label="Tag" />
      </Dialog>
    </>
  );
}

test('closes a dialog on Escape', async () => {
  fakeApi();
  const { user } = await renderPart(<Opened />);
  await user.click(screen.getByRole('button', { name: 'Open' }));
  expect(screen.getByRole('dialog', { name: 'Add a tag' })).toBeTruthy();
  await user.keyboard('{Escape}');
  expect(screen.queryByRole('dialog')).toBeNull();
});

test('ignores Escape and shows no close button if `persistent` is set', async () => {
  fakeApi();
  const { user } = await renderPart(<Opened persistent />);
  await user.click(screen.getByRole('button', { name: 'Open' }));
  await user.keyboard('{Escape}');
  expect(screen.getByRole('dialog')).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Close' })).toBeNull();
});

test('keeps a confirmation open and shows the error if the action fails', async () => {
  fakeApi();
  const onOpenChange = vi.fn();
  const onConfirm = vi.fn().mockRejectedValueOnce(new Error('still in use')).mockResolvedValueOnce(undefined);
  const { user } = await renderPart(
    <Confirm open title="Remove web?" action="Remove" onOpenChange={onOpenChange} onConfirm={onConfirm} />,
  );
  await user.click(screen.getByRole('button', { name: 'Remove' }));
  expect(screen.getByRole('alert').textContent).toBe('still in use');
  expect(onOpenChange).not.toHaveBeenCalled();
  await user.click(screen.getByRole('button', { name: 'Remove' }));
  expect(onOpenChange).toHaveBeenCalledWith(false);
});

test('lists failed items and retries only those', async () => {
  fakeApi();
  const onOpenChange = vi.fn();
  const onDone = vi.fn();
  const broken = new Set(['b']);
  const act = vi.fn(async ({ id }: { id: string }) => {
    if (broken.has(id)) throw new Error('no answer');
  });
  const { user } = await renderPart(
    <EachDialog
      open
      onOpenChange={onOpenChange}
      title="Approve agents"
      action="Approve 3"
      done="approved"
      items={['a', 'b', 'c'].map((id) => ({ id, name: `web-${id}` }))}
      act={act}
      onDone={onDone}
    />,
  );
  await user.click(screen.getByRole('button', { name: 'Approve 3' }));
  expect((await screen.findByRole('alert')).textContent).toBe('2 approved. 1 was not:web-bno answer');
  expect(onDone).toHaveBeenLastCalledWith(['a', 'c']);
  expect(onOpenChange).not.toHaveBeenCalled();
  broken.clear();
  await user.click(screen.getByRole('button', { name: 'Try again' }));
  await vi.waitFor(() => expect(onOpenChange).toHaveBeenCalledWith(false));
  expect(act.mock.calls.map(([{ id }]) => id)).toEqual(['a', 'b', 'c', 'b']);
});
