import { type CSSProperties, useEffect } from 'react';
import { Toaster as Sonner } from 'sonner';

export { toast } from 'sonner';

const style = {
  // The library sets a font of its own.
  fontFamily: 'var(--sans)',
  // The close button is inside the toast, at its right end.
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
      // Toasts are over the search of the page, where they cover neither the buttons of a dialog, which are at its end,
      // nor those of the page.
      position="top-center"
      closeButton
      offset={{ top: 8 }}
      mobileOffset={{ top: 'calc(0.25rem + env(safe-area-inset-top))' }}
      style={style}
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
