import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { expect, test } from 'vitest';
import { Input } from '../form/field.tsx';
import { Confirm, Dialog } from './dialog.tsx';
import { FormDialog } from './form-dialog.tsx';
import { Menu, MenuItem } from './menu.tsx';

function Page() {
  const [open, setOpen] = useState<'dialog' | 'form' | 'confirm' | null>(null);
  const [removed, setRemoved] = useState(false);
  const close = () => setOpen(null);
  return (
    <main id="content" tabIndex={-1}>
      {!removed && (
        <button type="button" onClick={() => setOpen('dialog')}>
          Open
        </button>
      )}
      <button type="button" onClick={() => setOpen('form')}>
        Edit
      </button>
      <Menu trigger={<button type="button">More</button>}>
        <MenuItem onSelect={() => setOpen('confirm')}>Remove</MenuItem>
      </Menu>
      <Dialog open={open === 'dialog'} onOpenChange={close} title="Dialog">
        <button type="button" onClick={() => setRemoved(true)}>
          Remove the opener
        </button>
      </Dialog>
      {open === 'form' && (
        <FormDialog title="Form" action="Save" onSubmit={close} onClose={close}>
          <Input label="Name" autoFocus />
        </FormDialog>
      )}
      <Confirm open={open === 'confirm'} onOpenChange={close} title="Sure?" action="Yes" onConfirm={async () => {}} />
    </main>
  );
}

const button = (name: string) => screen.findByRole('button', { name });
const focused = (name: string) => expect.poll(() => document.activeElement?.textContent).toBe(name);

test('returns the focus to the button that opened a dialog', async () => {
  const user = userEvent.setup();
  render(<Page />);
  await user.click(await button('Open'));
  await screen.findByRole('dialog');
  await user.keyboard('{Escape}');
  await focused('Open');
});

test('returns the focus after a form whose first field takes the focus', async () => {
  const user = userEvent.setup();
  render(<Page />);
  await user.click(await button('Edit'));
  await screen.findByRole('textbox', { name: 'Name' });
  await user.click(await button('Save'));
  await focused('Edit');
});

test('returns the focus to the trigger of the menu that opened a dialog', async () => {
  const user = userEvent.setup();
  render(<Page />);
  await user.click(await button('More'));
  await user.click(await screen.findByRole('menuitem', { name: 'Remove' }));
  await screen.findByRole('alertdialog');
  await user.keyboard('{Escape}');
  await focused('More');
});

test('moves the focus to the content if the opener was removed', async () => {
  const user = userEvent.setup();
  render(<Page />);
  await user.click(await button('Open'));
  await user.click(await button('Remove the opener'));
  await user.keyboard('{Escape}');
  await expect.poll(() => document.activeElement?.id).toBe('content');
});
