import { useSyncExternalStore } from 'react';
import { chosenTheme, subscribeTheme, type Theme } from './theme-choice.ts';

export const useTheme = (): Theme => useSyncExternalStore(subscribeTheme, chosenTheme);

/** Returns the current theme, for charts, editors, and terminals, which cannot use CSS variables. */
export const useShownTheme = (): 'light' | 'dark' =>
  useSyncExternalStore(subscribeTheme, () => (document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light'));
