/** Server-Sent Events as they come, cut into events. Pure: text in, events out. */

export interface Frame {
  /** `message` where it was not named. */
  readonly event: string;
  readonly data: string;
}

/** No event of ours is near that long. */
const longest = 4 * 1024 * 1024;

export class FrameReader {
  #rest = '';
  #data: string[] = [];
  #event = '';
  #length = 0;
  /** Id of the last event that came whole: where to go on. Null: none has. */
  lastId: string | null = null;
  #id: string | null = null;

  /**
   * @returns the events that are whole now
   * @throws when one is longer than any should be
   */
  feed(text: string): Frame[] {
    const frames: Frame[] = [];
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const frame = this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (frame !== null) frames.push(frame);
    }
    if (this.#rest.length + this.#length > longest) throw new Error('an event is longer than any should be');
    return frames;
  }

  #line(line: string): Frame | null {
    if (line === '') return this.#end();
    const at = line.indexOf(':');
    // A comment: that the other side is still there.
    if (at === 0) return null;
    const field = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? '' : line.slice(line[at + 1] === ' ' ? at + 2 : at + 1);
    if (field === 'data') {
      this.#data.push(value);
      // Empty ones take room as well.
      this.#length += value.length + 1;
    } else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    return null;
  }

  #end(): Frame | null {
    const frame = this.#data.length === 0 ? null : { event: this.#event || 'message', data: this.#data.join('\n') };
    if (this.#id !== null) this.lastId = this.#id;
    this.#data = [];
    this.#event = '';
    this.#length = 0;
    return frame;
  }
}
