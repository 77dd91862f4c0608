import { useEffect } from 'react';
import { Toaster as Sonner } from 'sonner';

export { toast } from 'sonner';

/** @param onReady called when the toaster can show toasts */
export default function Toaster({
  theme,
  onReady,
}: {
  readonly theme: 'light' | 'dark';
  readonly onReady: () => void;
}) {
  useEffect(onReady, [onReady]);
  return (
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
}
