import type { Role } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { addNewOperator } from '../../api/operators.ts';
import { Code } from '../../parts/copy.tsx';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { useDraftFields } from '../use-draft-fields.ts';
import { readPublicKey } from './public-key.ts';

export function AddOperator({ onClose }: { readonly onClose: () => void }) {
  const [{ name, key, role }, change] = useDraftFields({
    name: 'new operator',
    initial: () => ({ name: '', key: '', role: 'operator' as Role }),
  });
  const add = useMutation({
    mutationFn: () => {
      const hex = readPublicKey(key);
      if (hex === null)
        throw new Error(
          'This is not a public key. Enter 64 hexadecimal characters, or a line that starts with ssh-ed25519.',
        );
      return addNewOperator(hex, name.trim(), role);
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
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <Input
        label="Name"
        required
        autoFocus
        value={name}
        onChange={(event) => change({ name: event.target.value })}
        hint="Letters, digits, - or _, starting with a letter. Names are permanent."
      />
      <Input
        label="Public key"
        required
        value={key}
        onChange={(event) => change({ key: event.target.value })}
        className="font-mono"
        hint="64 hexadecimal characters, or a line that starts with ssh-ed25519."
      />
      <div className="text-muted text-sm">
        <p className="mb-1">To create a key and print its public key, they run:</p>
        <Code text="muster operator init && muster operator whoami --public-key" />
      </div>
      <Select
        label="Role"
        value={role}
        onChange={(event) => change({ role: event.target.value as Role })}
        hint="Admins also manage operators, channels, maintenance windows, and enrollment."
      >
        <option value="operator">operator</option>
        <option value="admin">admin</option>
      </Select>
    </FormDialog>
  );
}
