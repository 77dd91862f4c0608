import { useSyncExternalStore } from 'react';

/** The colours that a canvas draws with: those of the theme, which it cannot follow by itself. */
export interface Colours {
  readonly line: readonly string[];
  readonly grid: string;
  readonly text: string;
}

let known: { theme: string; colours: Colours } | null = null;

function read(): Colours {
  const theme = document.documentElement.dataset.theme ?? '';
  if (known?.theme === theme) return known.colours;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  known = {
    theme,
    colours: { line: [of('--accent'), of('--good'), of('--warn')], grid: of('--line'), text: of('--muted') },
  };
  return known.colours;
}

function subscribe(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => observer.disconnect();
}

export const useColours = (): Colours => useSyncExternalStore(subscribe, read);
