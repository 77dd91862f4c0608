import { createParser } from 'eventsource-parser';

/** An event in a stream of Server-Sent Events. */
export interface EventFrame {
  /** Event name; `message` if the stream does not set one. */
  readonly event: string;
  readonly data: string;
}

/** Maximum length of an incomplete event, in characters. Muster's events are far shorter. */
const maxEventLength = 4 * 1024 * 1024;

/** Parses Server-Sent Events from chunks that may end anywhere, even within a character. */
export class EventFrameReader {
  readonly #decoder = new TextDecoder();
  readonly #parser;
  #frames: EventFrame[] = [];
  #lastId: string | null;

  /** @param lastId ID of the event after which the stream resumes; null to start at the beginning */
  constructor(lastId: string | null = null) {
    this.#lastId = lastId;
    this.#parser = createParser({
      maxBufferSize: maxEventLength,
      onId: (id) => {
        this.#lastId = id;
      },
      onEvent: ({ event = 'message', data }) => {
        if (data !== '') this.#frames.push({ event, data });
      },
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded')
          throw new Error(`the orchestrator sent an event of more than ${maxEventLength} characters`);
      },
    });
  }

  /**
   * ID of the last complete event, after which the stream can resume; null before the first event. Events without data
   * also update it.
   */
  get lastId(): string | null {
    return this.#lastId;
  }

  /**
   * Parses a chunk, and returns the events that it completes.
   * @throws Error if an event has more than 4 Mi characters
   */
  feed(piece: Uint8Array): EventFrame[] {
    this.#parser.feed(this.#decoder.decode(piece, { stream: true }));
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }
}
