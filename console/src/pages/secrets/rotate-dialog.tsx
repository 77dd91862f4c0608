import { useMutation } from '@tanstack/react-query';
import { rotateKey } from '../../api/secrets.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Problem } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';

export function RotateDialog({ onClose }: { readonly onClose: () => void }) {
  const rotate = useMutation({ mutationFn: rotateKey });
  const { data } = rotate;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Rotate the encryption key of secrets"
      footer={
        data === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" busy={rotate.isPending} onClick={() => rotate.mutate()}>
              Rotate encryption key
            </Button>
          </>
        ) : (
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        )
      }
    >
      <div className="space-y-3 text-sm">
        <Problem error={rotate.error} />
        {data === undefined ? (
          <p>
            The orchestrator encrypts the values of all secrets with one key. This encrypts them again with a new key.
            The values stay the same, and modules can use them in the meantime. If the rotation is interrupted, no value
            is lost, and you can start it again.
          </p>
        ) : (
          <>
            <p role="status">
              {data.reencrypted} {data.reencrypted === 1 ? 'value' : 'values'} re-encrypted with the key{' '}
              <code className="font-mono text-xs">{visibleText(data.key_id)}</code>.
            </p>
            {data.retired.length > 0 && (
              <p>
                No longer needed {data.retired.length === 1 ? 'key' : 'keys'}:{' '}
                <code className="font-mono text-xs">{visibleText(data.retired.join(', '))}</code>
              </p>
            )}
            {data.unreadable.length > 0 && (
              <p className="text-bad">
                Not re-encrypted because their key is missing: {visibleText(data.unreadable.join(', '))}. Restore the
                key, or set new values.
              </p>
            )}
          </>
        )}
      </div>
    </Dialog>
  );
}
