import { type CSSProperties, useEffect } from 'react';
import { Toaster as Sonner } from 'sonner';

export { toast } from 'sonner';

/** Places the close button inside the toast, at its right end. */
const closeButtonInside = {
  '--toast-close-button-start': 'unset',
  '--toast-close-button-end': '0.5rem',
  '--toast-close-button-transform': 'translateY(0.5rem)',
} as CSSProperties;

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
      // Keeps toasts above the last line of the page, which may show the editor's key hints.
      offset={{ bottom: 88, right: 24 }}
      style={closeButtonInside}
      toastOptions={{
        style: {
          background: 'var(--surface)',
          fontFamily: 'inherit',
          color: 'var(--text)',
          borderColor: 'var(--line)',
          boxShadow: 'var(--shadow)',
        },
      }}
    />
  );
}
