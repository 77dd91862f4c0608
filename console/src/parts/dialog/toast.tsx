import { ApiError } from '@muster/protocol/client';
import { useEffect, useState } from 'react';
import { messageOf } from '../states.tsx';
import { lineText } from '../text.tsx';

/** Short notes on what was just done, below the page. What matters also stands where it belongs. */

const load = () => import('./toaster.tsx');
type Loaded = Awaited<ReturnType<typeof load>>;

/** Resolves when somebody hears of notes. */
const heard = Promise.withResolvers<void>();
let setLoaded: (loaded: Loaded) => void = () => {};

/** When nobody answers it is tried with the next note: the page does without. */
async function show(tell: (toast: Loaded['toast']) => void): Promise<void> {
  const loaded = await load().catch(() => null);
  if (loaded === null) return;
  setLoaded(loaded);
  await heard.promise;
  tell(loaded.toast);
}

export const notify = (message: string): void => void show((toast) => void toast(lineText(message, 300)));

/** As told, for what went wrong; it stays until it is closed. */
export const notifyError = (error: unknown): void => {
  const code = error instanceof ApiError ? error.problem.code : undefined;
  void show((toast) => void toast.error(messageOf(error), { description: code, duration: 12_000 }));
};

/** Milliseconds. Nobody has done anything yet, and a screen reader knows the place before the first note. */
const laterMs = 3_000;

/** Comes after the page, or with the first note. */
export function Toaster({ theme }: { readonly theme: 'light' | 'dark' }) {
  const [Shown, setShown] = useState<Loaded['default'] | null>(null);
  useEffect(() => {
    setLoaded = (loaded) => setShown(() => loaded.default);
    const timer = window.setTimeout(() => void show(() => {}), laterMs);
    return () => window.clearTimeout(timer);
  }, []);
  return Shown && <Shown theme={theme} onReady={heard.resolve} />;
}
