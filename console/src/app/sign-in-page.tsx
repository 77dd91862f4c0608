import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { session } from '../api/client.ts';
import { KeyFileError } from '../api/key-file.ts';
import type { Person } from '../api/session.ts';
import { signInWithCode, signInWithKey } from '../api/sign-in.ts';
import { Button } from '../parts/button.tsx';
import { Code } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Input } from '../parts/field.tsx';
import { Problem } from '../parts/states.tsx';
import { Mark } from './mark.tsx';

/** The code of `muster web-login`, from the fragment of the address: taken once, and gone from the address at once. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code === null) return null;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

export function SignInPage() {
  useEffect(() => {
    document.title = 'Sign in · Muster';
  }, []);
  return (
    <main className="flex min-h-dvh items-center justify-center p-4">
      <div className="w-full max-w-sm">
        <div className="mb-6 flex items-center gap-3">
          <Mark className="size-9" />
          <h1 className="font-semibold text-xl tracking-tight">Sign in to Muster</h1>
        </div>
        <SignInForm />
      </div>
    </main>
  );
}

/** Over the page, when the session ended in the middle of something. */
export function SignInOver({ person }: { readonly person: Person }) {
  const client = useQueryClient();
  return (
    <Dialog
      open
      onOpenChange={(open) => {
        if (open) return;
        client.clear();
        void session.leave();
      }}
      title="Your session has ended"
      description={`Sign in again as ${person.username} to go on. What you typed is still here.`}
    >
      <SignInForm />
    </Dialog>
  );
}

function SignInForm() {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState<string | null>(null);
  const [passphrase, setPassphrase] = useState('');
  const [locked, setLocked] = useState(false);
  const file = useRef<HTMLInputElement>(null);
  const began = useRef(false);

  const attempt = async (act: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (thrown) {
      if (thrown instanceof KeyFileError && thrown.needsPassphrase) setLocked(true);
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: the code is taken once, when the page opens or its fragment changes
  useEffect(() => {
    const redeem = () => {
      const code = takeCode();
      if (code !== null) void attempt(() => signInWithCode(code));
    };
    if (!began.current) redeem();
    began.current = true;
    window.addEventListener('hashchange', redeem);
    return () => window.removeEventListener('hashchange', redeem);
  }, []);

  const read = async (chosen: File | undefined) => {
    if (chosen === undefined) return;
    const content = chosen.size > 64 * 1024 ? '' : await chosen.text();
    setText(content);
    setLocked(false);
    await attempt(() => signInWithKey(content, null));
  };

  return (
    <div className="space-y-5">
      <Problem error={error} />
      <section className="rounded-lg border bg-surface p-4">
        <h2 className="mb-1 font-semibold text-sm">With the command line</h2>
        <p className="mb-2 text-muted text-sm">
          Where you are signed in with <code className="font-mono">muster</code>, ask for a link and open it here. It is
          good once, for a minute.
        </p>
        <Code text="muster web-login" />
      </section>
      <section className="rounded-lg border bg-surface p-4">
        <h2 className="mb-1 font-semibold text-sm">With your key file</h2>
        <p className="mb-3 text-muted text-sm">
          The key signs here, in your browser, and goes nowhere else. It is usually{' '}
          <code className="font-mono">~/.config/muster/key.pem</code>.
        </p>
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
        {locked && text !== null && (
          <form
            className="mt-3 flex items-end gap-2"
            onSubmit={(event) => {
              event.preventDefault();
              void attempt(() => signInWithKey(text, passphrase));
            }}
          >
            <div className="flex-1">
              <Input
                label="Passphrase of the key"
                type="password"
                value={passphrase}
                onChange={(event) => setPassphrase(event.target.value)}
              />
            </div>
            <Button type="submit" busy={busy}>
              Unlock
            </Button>
          </form>
        )}
      </section>
    </div>
  );
}
