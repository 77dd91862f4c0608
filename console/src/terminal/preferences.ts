import { useSyncExternalStore } from 'react';

/** How this person wants terminals: kept in the browser. */
export interface TerminalPreferences {
  /** Pixels. */
  readonly fontSize: number;
  readonly screenReader: boolean;
}

const key = 'muster.terminal';
export const fontSizes = { least: 8, most: 28, usual: 13 } as const;
const listeners = new Set<() => void>();

function stored(): TerminalPreferences {
  try {
    const { fontSize, screenReader } = JSON.parse(window.localStorage.getItem(key) ?? '{}');
    return {
      fontSize:
        Number.isInteger(fontSize) && fontSize >= fontSizes.least && fontSize <= fontSizes.most
          ? fontSize
          : fontSizes.usual,
      screenReader: screenReader === true,
    };
  } catch {
    return { fontSize: fontSizes.usual, screenReader: false };
  }
}
let chosen: TerminalPreferences | null = null;
const current = (): TerminalPreferences => {
  chosen ??= stored();
  return chosen;
};

export function setTerminalPreferences(change: Partial<TerminalPreferences>): void {
  chosen = { ...current(), ...change };
  window.localStorage.setItem(key, JSON.stringify(chosen));
  for (const listener of listeners) listener();
}

export const useTerminalPreferences = (): TerminalPreferences =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
