import { createParser } from 'eventsource-parser';

/** The last id in frames that are whole. */
function lastId(frames: string): string | null {
  const ids = [...frames.matchAll(/^id: (\d+)$/gm)];
  return ids.at(-1)?.[1] ?? null;
}

/**
 * Reads frames of Server-Sent Events out of pieces that end anywhere: in a line, in a character. Many frames carry only
 * an id, for the place that is reached; a place counts once its frame has come whole.
 * @param onFrame is told of frames with data
 */
export function createFrames(onFrame: (event: string | undefined, data: string) => void, from: string | null = null) {
  const decoder = new TextDecoder();
  let place = from;
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
      place = lastId(rest.slice(0, end)) ?? place;
      rest = rest.slice(end + 2);
    },
    /** What is asked to go on after; null: nothing has come. */
    place: () => place,
  };
}
