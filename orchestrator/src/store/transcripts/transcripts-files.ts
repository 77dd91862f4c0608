import type { Clock } from '../../../../lib/src/clock.ts';
import { maxLineBytes } from '../cast.ts';
import { TranscriptFiles } from './transcript-files.ts';
import { completeLines, shownBytes } from './transcript-lines.ts';
import { FileRecording, TranscriptSync } from './transcript-writer.ts';
import { digestOf, type Recording, type Transcripts } from './transcripts.ts';

/** @param directory created if it does not exist; accessible only to its owner */
export async function openFileTranscripts(directory: string, clock: Clock): Promise<Transcripts> {
  const files = await TranscriptFiles.open(directory);
  const sync = new TranscriptSync(clock);
  const recordings = new Map<string, Recording>();
  let recorded = 0;
  /**
   * Returns the number of readable bytes, excluding a line that is still being written; null if there is no transcript.
   */
  const lengthOf = async (sessionId: string): Promise<number | null> =>
    recordings.get(sessionId)?.written ?? (await files.size(sessionId));
  const cast = async (sessionId: string) => {
    const length = await lengthOf(sessionId);
    return length === null ? null : files.beginning(sessionId, length);
  };
  return {
    async create(sessionId, onFailure) {
      const { path, handle } = await files.create(sessionId);
      const onWritten = (bytes: number) => {
        recorded += bytes;
      };
      const recording = new FileRecording({ handle, path, sync, onFailure, onWritten });
      recordings.set(sessionId, recording);
      return {
        get written() {
          return recording.written;
        },
        get size() {
          return recording.size;
        },
        append: (lines, done) => recording.append(lines, done),
        finish: () => recording.finish().finally(() => recordings.delete(sessionId)),
      };
    },
    has: async (sessionId) => (await lengthOf(sessionId)) !== null,
    cast,
    async raw(sessionId) {
      const bytes = await cast(sessionId);
      return bytes === null ? null : shownBytes(bytes);
    },
    part: (sessionId, from, to) => files.part(sessionId, from, to),
    async repair(sessionId) {
      const length = await lengthOf(sessionId);
      if (length === null || recordings.has(sessionId)) return;
      const from = Math.max(0, length - 2 * maxLineBytes);
      const end = from + completeLines(await files.part(sessionId, from, length));
      // Muster never writes a line this long, so another program must have changed the file.
      if (end === length || (end === from && from > 0)) return;
      await files.truncate(sessionId, end);
    },
    async digest(sessionId) {
      const pieces = await cast(sessionId);
      return pieces === null ? null : digestOf(pieces);
    },
    remove: (sessionId) => files.remove(sessionId),
    async ids({ after, below, limit }) {
      const ids = (await files.ids()).filter((id) => id > after && id < below);
      return ids.sort().slice(0, limit);
    },
    get recorded() {
      return recorded;
    },
    get syncs() {
      return sync.count;
    },
    close: async () => sync.stop(),
  };
}
