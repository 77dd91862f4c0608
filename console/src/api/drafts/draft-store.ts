/**
 * Stores unsaved input, so that it survives a reload or crash of the tab. Ignores failures: in a private window or on a
 * full disk, drafts are not stored. Never store secret values in drafts.
 */

const storeName = 'drafts';
let database: Promise<IDBDatabase> | null = null;

const open = (): Promise<IDBDatabase> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.open('muster', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(storeName);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

async function run<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
  try {
    database ??= open();
    const store = (await database).transaction(storeName, mode).objectStore(storeName);
    return await new Promise((resolve, reject) => {
      const request = act(store);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return undefined;
  }
}

/** Returns undefined if there is no draft. */
export const readDraft = (key: string): Promise<unknown> => run('readonly', (store) => store.get(key));
export const writeDraft = (key: string, draft: unknown): Promise<unknown> =>
  run('readwrite', (store) => store.put(draft, key));
export const deleteDraft = (key: string): Promise<unknown> => run('readwrite', (store) => store.delete(key));
/** Deletes the drafts of all operators. */
export const clearDrafts = (): Promise<unknown> => run('readwrite', (store) => store.clear());
