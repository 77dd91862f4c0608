import { ApiError } from '@muster/protocol/client';
import { Toaster as Sonner, toast } from 'sonner';
import { messageOf } from './states.tsx';
import { lineText } from './text.tsx';

/** Short notes on what was just done, below the page. What matters also stands where it belongs. */

export const told = (message: string): void => void toast(lineText(message, 300));

/** As told, for what went wrong; it stays until it is closed. */
export const toldProblem = (error: unknown): void => {
  const code = error instanceof ApiError ? error.problem.code : undefined;
  toast.error(messageOf(error), { description: code, duration: 12_000 });
};

export const Toaster = ({ theme }: { readonly theme: 'light' | 'dark' }) => (
  <Sonner
    theme={theme}
    position="bottom-right"
    closeButton
    toastOptions={{
      style: {
        background: 'var(--surface)',
        color: 'var(--text)',
        borderColor: 'var(--line)',
        boxShadow: 'var(--shadow)',
      },
    }}
  />
);
