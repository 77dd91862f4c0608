import { createParser } from 'eventsource-parser';

/** An event of a stream of Server-Sent Events. */
export interface EventFrame {
  /** `message` if the stream does not name the event. */
  readonly event: string;
  readonly data: string;
}

/** Characters of an incomplete event that are kept. The events of Muster are far shorter. */
const maxEventLength = 4 * 1024 * 1024;

/** Parses Server-Sent Events from chunks that may end anywhere, even within a character. */
export class EventFrameReader {
  readonly #decoder = new TextDecoder();
  readonly #parser;
  #frames: EventFrame[] = [];
  #lastId: string | null;

  /** @param lastId the id that the stream resumes after; null from the beginning */
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

  /** The id of the last complete event, to resume after; null before the first one. An event without data counts. */
  get lastId(): string | null {
    return this.#lastId;
  }

  /**
   * Returns the events that this chunk completes.
   * @throws Error for an event of more than 4 Mi characters
   */
  feed(piece: Uint8Array): EventFrame[] {
    this.#parser.feed(this.#decoder.decode(piece, { stream: true }));
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }
}
