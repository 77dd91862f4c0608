import { ApiError } from '@muster/protocol/client';
import { useEffect, useState } from 'react';
import { messageOf } from '../states.tsx';
import { lineText } from '../text.tsx';

/** Toasts confirm an action. Important messages are also shown next to the object that they concern. */

const load = () => import('./toaster.tsx');
type Loaded = Awaited<ReturnType<typeof load>>;

/** Resolves when the toaster can show toasts. */
const ready = Promise.withResolvers<void>();
let setLoaded: (loaded: Loaded) => void = () => {};

/** If the toaster cannot be loaded, this toast is dropped; the next one loads it again. */
async function show(send: (toast: Loaded['toast']) => void): Promise<void> {
  const loaded = await load().catch(() => null);
  if (loaded === null) return;
  setLoaded(loaded);
  await ready.promise;
  send(loaded.toast);
}

export const notify = (message: string): void => void show((toast) => void toast(lineText(message, 300)));

/** Shows an error for 12 seconds, with its API code. */
export const notifyError = (error: unknown): void => {
  const code = error instanceof ApiError ? error.problem.code : undefined;
  void show((toast) => void toast.error(messageOf(error), { description: code, duration: 12_000 }));
};

/** Delays the download until after the page, but not until the first toast: screen readers must know the region first. */
const loadAfterMs = 3_000;

/** Loads the toaster after the page, or with the first toast. */
export function Toaster({ theme }: { readonly theme: 'light' | 'dark' }) {
  const [Shown, setShown] = useState<Loaded['default'] | null>(null);
  useEffect(() => {
    setLoaded = (loaded) => setShown(() => loaded.default);
    const timer = window.setTimeout(() => void show(() => {}), loadAfterMs);
    return () => window.clearTimeout(timer);
  }, []);
  return Shown && <Shown theme={theme} onReady={ready.resolve} />;
}
