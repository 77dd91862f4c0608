import { useSyncExternalStore } from 'react';

/** Named views of the agents page, stored in this browser. A view consists of the page's URL parameters. */

export interface SavedView {
  readonly name: string;
  /** URL parameters. */
  readonly search: Readonly<Record<string, string>>;
}

const key = 'muster.views.agents';
const listeners = new Set<() => void>();
let views: readonly SavedView[] | null = null;

/** Parses stored views. Skips invalid ones, which can result from manual edits. */
export function readViews(text: string | null): readonly SavedView[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    if (!Array.isArray(value)) return [];
    return value.flatMap((view: unknown): SavedView[] => {
      const { name, search } = Object(view) as Record<string, unknown>;
      if (typeof name !== 'string' || typeof search !== 'object' || search === null) return [];
      const texts = Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
      return [{ name, search: Object.fromEntries(texts) }];
    });
  } catch {
    return [];
  }
}

const snapshot = (): readonly SavedView[] => {
  views ??= readViews(window.localStorage.getItem(key));
  return views;
};

function store(next: readonly SavedView[]): void {
  views = next;
  window.localStorage.setItem(key, JSON.stringify(next));
  for (const listener of listeners) listener();
}

export const saveView = (view: SavedView): void =>
  store([...snapshot().filter(({ name }) => name !== view.name), view].sort((a, b) => a.name.localeCompare(b.name)));

export const removeView = (name: string): void => store(snapshot().filter((view) => view.name !== name));

const textOf = (search: Readonly<Record<string, string>>): string => JSON.stringify(Object.entries(search).sort());

export const isSameSearch = (a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean =>
  textOf(a) === textOf(b);

const subscribe = (listener: () => void) => {
  const onStorage = (event: StorageEvent) => {
    if (event.key !== key) return;
    views = null;
    listener();
  };
  listeners.add(listener);
  window.addEventListener('storage', onStorage);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', onStorage);
  };
};

export const useSavedViews = (): readonly SavedView[] => useSyncExternalStore(subscribe, snapshot);
