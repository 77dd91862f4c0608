import { ApiError } from '@muster/protocol/client';
import { lazy, Suspense, useEffect, useState } from 'react';
import { messageOf } from './states.tsx';
import { lineText } from './text.tsx';

/** Short notes on what was just done, below the page. What matters also stands where it belongs. */

const load = () => import('./toaster.tsx');
const Shown = lazy(load);

/** Resolves when somebody hears of notes. */
const heard = Promise.withResolvers<void>();
let want = () => {};

async function show(tell: (toast: Awaited<ReturnType<typeof load>>['toast']) => void): Promise<void> {
  want();
  const [{ toast }] = await Promise.all([load(), heard.promise]);
  tell(toast);
}

export const told = (message: string): void => void show((toast) => void toast(lineText(message, 300)));

/** As told, for what went wrong; it stays until it is closed. */
export const toldProblem = (error: unknown): void => {
  const code = error instanceof ApiError ? error.problem.code : undefined;
  void show((toast) => void toast.error(messageOf(error), { description: code, duration: 12_000 }));
};

/** Milliseconds. Nobody has done anything yet, and a screen reader knows the place before the first note. */
const laterMs = 3_000;

/** Comes after the page, or with the first note. */
export function Toaster({ theme }: { readonly theme: 'light' | 'dark' }) {
  const [wanted, setWanted] = useState(false);
  useEffect(() => {
    want = () => setWanted(true);
    const timer = window.setTimeout(want, laterMs);
    return () => window.clearTimeout(timer);
  }, []);
  return <Suspense>{wanted && <Shown theme={theme} onReady={heard.resolve} />}</Suspense>;
}
