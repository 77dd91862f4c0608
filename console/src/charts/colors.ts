import { useSyncExternalStore } from 'react';

/** Theme colors for a canvas, which cannot use CSS variables. */
export interface Colors {
  readonly line: readonly string[];
  readonly grid: string;
  readonly text: string;
}

let cached: { theme: string; colors: Colors } | null = null;

function read(): Colors {
  const theme = document.documentElement.dataset.theme ?? '';
  if (cached?.theme === theme) return cached.colors;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  cached = {
    theme,
    colors: { line: [of('--chart'), of('--chart-2')], grid: of('--line'), text: of('--muted') },
  };
  return cached.colors;
}

function subscribe(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => observer.disconnect();
}

export const useColors = (): Colors => useSyncExternalStore(subscribe, read);
