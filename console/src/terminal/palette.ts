import type { ITheme } from '@xterm/xterm';

/** Terminal colors for both themes. xterm adjusts text colors to its minimum contrast ratio. */

const dark: ITheme = {
  background: '#12151c',
  foreground: '#dfe3ea',
  cursor: '#a5b4fc',
  cursorAccent: '#12151c',
  selectionBackground: '#3b4469',
  selectionInactiveBackground: '#2c3350',
  black: '#1b1f28',
  red: '#f2777a',
  green: '#7fd88f',
  yellow: '#e6c36a',
  blue: '#7aa7f0',
  magenta: '#c792ea',
  cyan: '#6fd0dc',
  white: '#c9d0dc',
  brightBlack: '#7b8496',
  brightRed: '#ff9a9c',
  brightGreen: '#a3eab0',
  brightYellow: '#f5d88f',
  brightBlue: '#a3c4ff',
  brightMagenta: '#dcb3f7',
  brightCyan: '#98e4ee',
  brightWhite: '#ffffff',
};

const light: ITheme = {
  background: '#ffffff',
  foreground: '#1f2533',
  cursor: '#4338ca',
  cursorAccent: '#ffffff',
  selectionBackground: '#c7d2fe',
  selectionInactiveBackground: '#e0e7ff',
  black: '#1f2533',
  red: '#b42318',
  green: '#18794e',
  yellow: '#8a5a00',
  blue: '#1d4fd7',
  magenta: '#8e24aa',
  cyan: '#0b7285',
  white: '#5c6577',
  brightBlack: '#6b7280',
  brightRed: '#c9352b',
  brightGreen: '#1d7f52',
  brightYellow: '#8f6200',
  brightBlue: '#2f5fe0',
  brightMagenta: '#9c36b5',
  brightCyan: '#0c7d91',
  brightWhite: '#374151',
};

const shown = (): ITheme => (document.documentElement.dataset.theme === 'dark' ? dark : light);

/**
 * Calls `take` with the current theme's colors, immediately and after every change.
 * @returns a function that unsubscribes
 */
export function followPalette(take: (theme: ITheme) => void): () => void {
  take(shown());
  const observer = new MutationObserver(() => take(shown()));
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  return () => observer.disconnect();
}
