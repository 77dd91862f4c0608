import type { Role } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { addNewOperator } from '../../api/operators.ts';
import { Code } from '../../parts/copy.tsx';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { readPublicKey } from './public-key.ts';

export function AddOperator({ onClose }: { readonly onClose: () => void }) {
  const add = useMutation({
    mutationFn: ({ key, name, role }: { key: string; name: string; role: Role }) => {
      const hex = readPublicKey(key);
      if (hex === null)
        throw new Error(
          'This is not a public key. Enter 64 hexadecimal characters, or a line that starts with ssh-ed25519.',
        );
      return addNewOperator(hex, name, role);
    },
    onSuccess: ({ username }) => {
      notify(`${username} can sign in now`);
      onClose();
    },
  });
  return (
    <FormDialog
      title="Add operator"
      description="Ask the new operator for their public key. They keep the private key."
      action="Add operator"
      request={add}
      onSubmit={(event) => {
        const form = new FormData(event.currentTarget);
        add.mutate({
          key: String(form.get('key')),
          name: String(form.get('name')).trim(),
          role: form.get('role') as Role,
        });
      }}
      onClose={onClose}
    >
      <Input
        label="Name"
        name="name"
        required
        autoFocus
        hint="Letters, digits, - or _, starting with a letter. Names are permanent."
      />
      <Input
        label="Public key"
        name="key"
        required
        className="font-mono"
        hint="64 hexadecimal characters, or a line that starts with ssh-ed25519."
      />
      <div className="text-muted text-sm">
        <p className="mb-1">To create a key and print its public key, they run:</p>
        <Code text="muster operator init && muster operator whoami --public-key" />
      </div>
      <Select
        label="Role"
        name="role"
        defaultValue="operator"
        hint="Admins also manage operators, channels, maintenance windows, and enrollment."
      >
        <option value="operator">operator</option>
        <option value="admin">admin</option>
      </Select>
    </FormDialog>
  );
}
