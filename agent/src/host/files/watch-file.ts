import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '../../../../lib/src/clock.ts';
import { errnoOf } from '../failure.ts';

/** Saving a file makes a burst of events; the last one counts. */
const quietMs = 100;
/** Events are best effort, and none come from a directory that was replaced: the file is read now and then besides. */
const rescanMs = 30_000;

/**
 * Tells when the text of a file has changed. The directory is watched, since a file that is replaced takes its watch
 * along.
 * @param known the text that is known already; null when there was no file
 * @param changed gets the new text, null once the file is gone
 * @returns ends the watch; `again` tells of the file at once, changed or not
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
  let callOffQuiet = () => {};
  let callOffRescan = () => {};

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
        callOffQuiet();
        callOffQuiet = clock.after(quietMs, () => void look());
      });
      watcher.on('error', () => watcher?.close());
    } catch {
      // No directory, or no watches left: the rescan is what remains.
    }
  }
  function rescan(): void {
    callOffRescan = clock.after(rescanMs, () => {
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
      callOffQuiet();
      callOffRescan();
      watcher?.close();
    },
  };
}

/** @throws Error that names the file when it cannot be read */
export async function readTextFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} could not be read: ${errnoOf(error) ?? (error as Error).message}`);
  }
}
