import { useSyncExternalStore } from 'react';

/** Terminal display settings, stored in this browser. */
export interface TerminalPreferences {
  /** Pixels. */
  readonly fontSize: number;
  readonly screenReader: boolean;
}

const key = 'muster.terminal';
export const fontSizes = { min: 8, max: 28, initial: 13 } as const;
const listeners = new Set<() => void>();

function stored(): TerminalPreferences {
  try {
    const { fontSize, screenReader } = JSON.parse(window.localStorage.getItem(key) ?? '{}');
    return {
      fontSize:
        Number.isInteger(fontSize) && fontSize >= fontSizes.min && fontSize <= fontSizes.max
          ? fontSize
          : fontSizes.initial,
      screenReader: screenReader === true,
    };
  } catch {
    return { fontSize: fontSizes.initial, screenReader: false };
  }
}
let loaded: TerminalPreferences | null = null;
const current = (): TerminalPreferences => {
  loaded ??= stored();
  return loaded;
};

export function setTerminalPreferences(change: Partial<TerminalPreferences>): void {
  loaded = { ...current(), ...change };
  window.localStorage.setItem(key, JSON.stringify(loaded));
  for (const listener of listeners) listener();
}

export const useTerminalPreferences = (): TerminalPreferences =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
