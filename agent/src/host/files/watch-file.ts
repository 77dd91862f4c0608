import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '../../../../lib/src/clock.ts';
import { errnoOf } from '../failure.ts';

/** Debounce interval, because saving a file raises a burst of events. */
const quietMs = 100;
/** Poll interval, because events are best effort and a replaced directory raises none. */
const rescanMs = 30_000;

/**
 * Reports changes to a file's text. Watches the directory, because a watch on the file is lost when the file is
 * replaced.
 * @param known the text that the caller already has; null if there was no file
 * @param changed receives the new text; null if the file was removed
 * @returns `end`, which stops the watch, and `again`, which reports the file immediately, whether or not it changed
 */
export function watchFile(
  path: string,
  known: string | null,
  clock: Clock,
  changed: (text: string | null) => void,
): { end(): void; again(): Promise<void> } {
  let text = known;
  let ended = false;
  let watcher: FSWatcher | null = null;
  let cancelQuiet = () => {};
  let cancelRescan = () => {};

  async function look(again = false): Promise<void> {
    let now: string | null;
    try {
      now = await readFile(path, 'utf8');
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') return;
      now = null;
    }
    if (ended || (now === text && !again)) return;
    text = now;
    changed(now);
  }
  function arm(): void {
    watcher?.close();
    watcher = null;
    try {
      watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
        if (name !== null && name !== basename(path)) return;
        cancelQuiet();
        cancelQuiet = clock.after(quietMs, () => void look());
      });
      watcher.on('error', () => watcher?.close());
    } catch {
      // The directory does not exist, or the kernel has no more watches. The rescan still runs.
    }
  }
  function rescan(): void {
    cancelRescan = clock.after(rescanMs, () => {
      arm();
      void look();
      rescan();
    });
  }
  arm();
  rescan();
  return {
    again: () => look(true),
    end() {
      ended = true;
      cancelQuiet();
      cancelRescan();
      watcher?.close();
    },
  };
}

/** @throws Error that names the file if the file cannot be read */
export async function readTextFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} could not be read: ${errnoOf(error) ?? (error as Error).message}`);
  }
}
