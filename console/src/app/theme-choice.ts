/** The operator's choice of a theme. Imports nothing, because it is applied before the page is drawn (start.ts). */

const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const key = 'muster.theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

/** Returns `system` if local storage is unavailable. */
const stored = (): Theme => {
  try {
    const value = window.localStorage.getItem(key);
    return themes.find((theme) => theme === value) ?? 'system';
  } catch {
    return 'system';
  }
};

let chosen: Theme = stored();

function show(): void {
  const shown = chosen === 'system' ? (dark.matches ? 'dark' : 'light') : chosen;
  document.documentElement.dataset.theme = shown;
  for (const listener of listeners) listener();
}

/** Applies the theme, then follows changes to the system setting and changes in other tabs. */
export function startTheme(): void {
  dark.addEventListener('change', show);
  window.addEventListener('storage', (event) => {
    if (event.key !== key) return;
    chosen = stored();
    show();
  });
  show();
}

export function setTheme(theme: Theme): void {
  chosen = theme;
  show();
  try {
    window.localStorage.setItem(key, theme);
  } catch {
    // Local storage is unavailable, so the choice applies to this tab only.
  }
}

export const chosenTheme = (): Theme => chosen;

/** @returns a function that ends the subscription */
export function subscribeTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
