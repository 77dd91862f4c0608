import { useEffect, useState } from 'react';
import { UnknownKey } from '../../../client/src/sign-in.ts';
import { KeyFileError } from '../api/sign-in/key-file-error.ts';
import type { Person } from '../api/sign-in/session.ts';
import { signInWithKey } from '../api/sign-in/sign-in.ts';
import { Button } from '../parts/button.tsx';
import { Code } from '../parts/copy.tsx';
import { Input } from '../parts/form/field.tsx';
import { Problem } from '../parts/states.tsx';
import { Text } from '../parts/text.tsx';
import { KeyChoice } from './key-choice.tsx';
import { Mark } from './mark.tsx';
import { linkedSignIn } from './sign-in-link.ts';
import { useLinkedSignIn } from './use-linked-sign-in.ts';

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

/** A key file that needs a passphrase. It stays in memory only until the operator enters the passphrase. */
interface LockedKey {
  readonly text: string;
  readonly name: string;
}

/** Signs in with a key file, or confirms the sign-in from a link. */
export function SignInForm() {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [locked, setLocked] = useState<LockedKey | null>(null);
  const linked = useLinkedSignIn();

  const attempt = async (act: () => Promise<void>) => {
    linkedSignIn.dismiss();
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };

  const tryKey = (text: string, name: string, passphrase: string | null) =>
    attempt(async () => {
      try {
        await signInWithKey(text, passphrase);
      } catch (thrown) {
        if (thrown instanceof KeyFileError && thrown.needsPassphrase) {
          setLocked({ text, name });
          if (passphrase === null) return;
        } else setLocked(null);
        throw thrown;
      }
    });

  if (linked?.status === 'pending' || linked?.status === 'beginning')
    return <ConfirmSignIn person={linked.pending.person} isBeginning={linked.status === 'beginning'} />;
  const shown = linked?.status === 'failed' ? linked.error : error;
  return (
    <div className="space-y-4">
      {shown instanceof UnknownKey ? <UnknownKeyNotice error={shown} /> : <Problem error={shown} />}
      <section className="rounded-lg border bg-surface p-4">
        <h2 className="mb-1 font-semibold text-sm">With your key file</h2>
        <p className="mb-3 text-muted text-sm">
          The key stays in your browser. The key file is usually{' '}
          <code className="font-mono text-xs">~/.config/muster/operator.key</code>.
        </p>
        {locked === null ? (
          <KeyChoice busy={busy} onKey={(text, name) => void tryKey(text, name, null)} onProblem={setError} />
        ) : (
          <PassphraseForm
            busy={busy}
            name={locked.name}
            onPassphrase={(passphrase) => void tryKey(locked.text, locked.name, passphrase)}
            onBack={() => {
              setLocked(null);
              setError(null);
            }}
          />
        )}
      </section>
      <section className="rounded-lg border bg-surface p-4">
        <h2 className="mb-1 font-semibold text-sm">With the command line</h2>
        <p className="mb-2 text-muted text-sm">
          On a computer where <code className="font-mono text-xs">muster</code> is signed in, request a link, then open
          it in this browser. The link works once and expires after one minute.
        </p>
        <Code text="muster web-login" />
      </section>
    </div>
  );
}

/** Asks for confirmation, because the link may come from an attacker. */
function ConfirmSignIn({
  person: { username, role },
  isBeginning,
}: {
  readonly person: Person;
  readonly isBeginning: boolean;
}) {
  return (
    <section className="rounded-lg border bg-surface p-4" aria-labelledby="confirm-sign-in">
      <h2 id="confirm-sign-in" className="mb-1 font-semibold text-sm">
        Sign in as <Text text={username} />?
      </h2>
      <p className="mb-3 text-muted text-sm">
        The link you opened signs you in with the role {role}. Continue only if you requested the link yourself.
      </p>
      <div className="flex gap-2">
        {/* No autofocus: an Enter key that was held down before the page opened must not confirm the sign-in. */}
        <Button look="primary" className="flex-1" busy={isBeginning} onClick={() => void linkedSignIn.accept()}>
          Sign in
        </Button>
        <Button disabled={isBeginning} onClick={linkedSignIn.dismiss}>
          Cancel
        </Button>
      </div>
    </section>
  );
}

function PassphraseForm({
  busy,
  name,
  onPassphrase,
  onBack,
}: {
  readonly busy: boolean;
  readonly name: string;
  readonly onPassphrase: (passphrase: string) => void;
  readonly onBack: () => void;
}) {
  const [passphrase, setPassphrase] = useState('');
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        setPassphrase('');
        onPassphrase(passphrase);
      }}
    >
      <Input
        label={
          <>
            Passphrase of <Text text={name} maxLength={60} />
          </>
        }
        type="password"
        autoFocus
        autoComplete="current-password"
        value={passphrase}
        onChange={(event) => setPassphrase(event.target.value)}
      />
      <div className="flex gap-2">
        <Button type="submit" look="primary" busy={busy} disabled={passphrase === ''} className="flex-1">
          Unlock and sign in
        </Button>
        <Button onClick={onBack}>Use another key</Button>
      </div>
    </form>
  );
}

function UnknownKeyNotice({ error }: { readonly error: UnknownKey }) {
  return (
    <div role="alert" className="space-y-2 rounded-md border border-bad/40 bg-bad-soft px-3 py-2 text-sm">
      <p className="text-bad">{error.message}</p>
      <p>An admin can add it with its public key:</p>
      <Code text={`muster operator add NAME ${error.publicKey}`} />
    </div>
  );
}
