import { useRef, useState } from 'react';
import { maxKeyBytes } from '../api/sign-in/key-file-error.ts';
import { Button } from '../parts/button.tsx';
import { classNames } from '../parts/class-names.ts';
import { TextArea } from '../parts/form/field.tsx';
import { useFileDrop } from './use-file-drop.ts';

/** Accepts a key as an opened file, a dropped file, or pasted text. */
export function KeyChoice({
  busy,
  onKey,
  onProblem,
}: {
  readonly busy: boolean;
  readonly onKey: (text: string, name: string) => void;
  readonly onProblem: (error: unknown) => void;
}) {
  const file = useRef<HTMLInputElement>(null);
  const [pasting, setPasting] = useState(false);

  const read = async (chosen: File | undefined) => {
    if (chosen === undefined) return;
    try {
      // A file of this size cannot be a key. Parsing a placeholder produces the same error without reading the file.
      const text = chosen.size > maxKeyBytes ? 'x'.repeat(maxKeyBytes + 1) : await chosen.text();
      onKey(text, chosen.name);
    } catch (cause) {
      onProblem(new Error('The browser could not read this file. Check its permissions.', { cause }));
    }
  };

  const over = useFileDrop((dropped) => void read(dropped));

  return (
    <div
      className={classNames(
        'rounded-md border border-dashed p-3',
        over ? 'border-accent bg-accent-soft' : 'border-line',
      )}
    >
      <input
        ref={file}
        type="file"
        className="sr-only"
        tabIndex={-1}
        aria-label="Key file"
        onChange={(event) => {
          void read(event.target.files?.[0]);
          event.target.value = '';
        }}
      />
      <Button look="primary" busy={busy} className="w-full" onClick={() => file.current?.click()}>
        Open key file
      </Button>
      {pasting ? (
        <PasteKeyForm
          onCancel={() => setPasting(false)}
          // Keeps the text box open, so that the operator can correct text that is not a key.
          onKey={(text) => onKey(text, 'the pasted key')}
        />
      ) : (
        <p className="mt-2 text-center text-muted text-xs">
          or drop it here, or{' '}
          <button
            type="button"
            className="rounded font-medium text-accent underline-offset-2 hover:underline"
            onClick={() => setPasting(true)}
          >
            paste its text
          </button>
        </p>
      )}
    </div>
  );
}

function PasteKeyForm({ onKey, onCancel }: { readonly onKey: (text: string) => void; readonly onCancel: () => void }) {
  const [pasted, setPasted] = useState('');
  return (
    <form
      className="mt-3 space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        onKey(pasted);
      }}
    >
      <TextArea
        label="Private key"
        rows={4}
        autoFocus
        autoComplete="off"
        className="font-mono text-xs"
        placeholder="-----BEGIN PRIVATE KEY-----"
        value={pasted}
        onChange={(event) => setPasted(event.target.value)}
      />
      <div className="flex justify-end gap-2">
        <Button look="quiet" small onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" small disabled={pasted.trim() === ''}>
          Use this key
        </Button>
      </div>
    </form>
  );
}
