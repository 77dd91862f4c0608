import { useSyncExternalStore } from 'react';

export const themes = ['system', 'light', 'dark'] as const;
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

/**
 * Applies the theme, then follows changes to the system setting and changes in other tabs. Call this function before
 * the first render.
 */
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
    // Local storage is unavailable, so the choice applies only to this tab.
  }
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useTheme = (): Theme => useSyncExternalStore(subscribe, () => chosen);

/** Returns the current theme, for charts, editors, and terminals, which cannot use CSS variables. */
export const useShownTheme = (): 'light' | 'dark' =>
  useSyncExternalStore(subscribe, () => (document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light'));
