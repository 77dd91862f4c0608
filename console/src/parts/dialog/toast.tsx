import { useEffect, useState } from 'react';
import { capitalized, messageOf } from '../states.tsx';
import { lineText } from '../text.tsx';

/** Toasts confirm actions. An important message must also be shown next to the affected object. */

const load = () => import('./toaster.tsx');
type Loaded = Awaited<ReturnType<typeof load>>;

/** Resolves once the toaster is rendered and can show toasts. */
const ready = Promise.withResolvers<void>();
let setLoaded: (loaded: Loaded) => void = () => {};

/** Shows a toast. If the toaster fails to load, drops the toast; the next one tries to load the toaster again. */
async function show(send: (toast: Loaded['toast']) => void): Promise<void> {
  const loaded = await load().catch(() => null);
  if (loaded === null) return;
  setLoaded(loaded);
  await ready.promise;
  send(loaded.toast);
}

/** Times in Unix milliseconds at which the current confirmations were shown, by toast. */
const confirmations = new Map<string | number, number>();

export const notify = (message: string): void =>
  void show((toast) => {
    const id: string | number = toast(lineText(message, 300), {
      onDismiss: () => confirmations.delete(id),
      onAutoClose: () => confirmations.delete(id),
    });
    confirmations.set(id, Date.now());
  });

/** An action may navigate and confirm. Its toast is at most this old, in milliseconds, when the navigation starts. */
const maxActionMs = 1_000;

/** Dismisses confirmations of actions on the page that the operator leaves. Errors stay. */
export function dismissConfirmations(): void {
  const old = [...confirmations].filter(([, at]) => Date.now() - at > maxActionMs).map(([id]) => id);
  if (old.length === 0) return;
  void show((toast) => {
    for (const id of old) toast.dismiss(id);
  });
}

/** Shows an error for 12 seconds. */
export const notifyError = (error: unknown): void =>
  void show((toast) => void toast.error(capitalized(messageOf(error)), { duration: 12_000 }));

/**
 * The toaster loads after the page, but before the first toast if possible: screen readers announce only toasts in a
 * region that already exists.
 */
const loadAfterMs = 3_000;

/** Loads the toaster some time after the page, or with the first toast. */
export function Toaster({ theme }: { readonly theme: 'light' | 'dark' }) {
  const [Shown, setShown] = useState<Loaded['default'] | null>(null);
  useEffect(() => {
    setLoaded = (loaded) => setShown(() => loaded.default);
    const timer = window.setTimeout(() => void show(() => {}), loadAfterMs);
    return () => window.clearTimeout(timer);
  }, []);
  return Shown && <Shown theme={theme} onReady={ready.resolve} />;
}
