import { createParser } from 'eventsource-parser';

/** The last id in complete frames. */
function lastId(frames: string): string | null {
  const ids = [...frames.matchAll(/^id: (\d+)$/gm)];
  return ids.at(-1)?.[1] ?? null;
}

/**
 * Parses Server-Sent Events from chunks that may end anywhere, even within a character. Many frames have only an id, which
 * advances the position; an id counts once its frame is complete.
 * @param onFrame called for frames with data
 * @param from the id to resume after; null at the beginning
 */
export function createFrames(onFrame: (event: string | undefined, data: string) => void, from: string | null = null) {
  const decoder = new TextDecoder();
  let position = from;
  let rest = '';
  const parser = createParser({
    onEvent({ event, data }) {
      if (data !== '') onFrame(event, data);
    },
  });
  return {
    feed(piece: Uint8Array): void {
      const text = decoder.decode(piece, { stream: true });
      parser.feed(text);
      rest += text;
      const end = rest.lastIndexOf('\n\n');
      if (end < 0) return;
      position = lastId(rest.slice(0, end)) ?? position;
      rest = rest.slice(end + 2);
    },
    /** The id to resume after; null before the first one. */
    position: () => position,
  };
}
