import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@muster/protocol/client';
import { followEvents } from '@muster/protocol/http';
import { EventFrameReader } from '../../../client/src/event-frames.ts';
import { printProgress } from '../run/progress.ts';

/** Milliseconds before a lost stream is opened again. */
const pauseMs = 500;

/** Follows the events of an orchestrator, like a console, and counts those of one type. */
export class EventStream {
  readonly #call: Client;
  readonly #type: string;
  readonly #end = new AbortController();
  readonly #opened = Promise.withResolvers<void>();
  #received = 0;
  #losses = 0;

  private constructor(call: Client, type: string) {
    this.#call = call;
    this.#type = type;
  }

  /** Opens a stream, which is opened again when it is lost. @param type event type, such as `agent.tagged` */
  static async open(call: Client, type: string): Promise<EventStream> {
    const stream = new EventStream(call, type);
    void stream.#follow();
    await stream.#opened.promise;
    return stream;
  }

  /** Number of events of the type. */
  get received(): number {
    return this.#received;
  }

  /** Number of times that the stream was lost, and opened again. */
  get losses(): number {
    return this.#losses;
  }

  close(): void {
    this.#end.abort();
  }

  async #follow(): Promise<void> {
    let lastId: string | null = null;
    while (!this.#end.signal.aborted) {
      const reader: EventFrameReader = new EventFrameReader(lastId);
      await this.#read(reader).catch((error: Error) => {
        if (!this.#end.signal.aborted) printProgress(`event stream lost: ${error.message}`);
      });
      if (this.#end.signal.aborted) return;
      lastId = reader.lastId;
      this.#losses++;
      await sleep(pauseMs);
    }
  }

  async #read(reader: EventFrameReader): Promise<void> {
    const query = reader.lastId === null ? {} : { last_event_id: reader.lastId };
    const { body } = await this.#call(followEvents, { query, signal: this.#end.signal });
    this.#opened.resolve();
    for await (const piece of body)
      for (const { event, data } of reader.feed(piece))
        if (event === 'message' && JSON.parse(data).event_type === this.#type) this.#received++;
  }
}
