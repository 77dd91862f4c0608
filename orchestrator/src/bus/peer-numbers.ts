/**
 * Tracks the message numbers of other processes: refuses repeated messages, and detects missing ones. A process accepts
 * messages from another process only after it has received that process's last numbers. It requests these numbers with
 * a random nonce, so that an old answer cannot make old messages acceptable.
 */

/** Milliseconds after which a silent process is forgotten. Each process sends a message every second. */
const silentMs = 10_000;
/** Milliseconds between two greetings to a process that has not answered. */
const greetMs = 1_000;
/** Milliseconds for which an answer to a greeting is accepted. */
const answerMs = 10_000;
/** Maximum number of processes that are greeted at the same time. */
const maxGreeted = 256;

/** Whether a message was sent to all processes, or only to this process. */
export type Channel = 'all' | 'direct';

export type Order =
  | 'next'
  /** Messages before this message are missing. */
  | 'gap'
  /** The message, or a later one, was received before. */
  | 'repeated'
  /** The sender's last number is not known. */
  | 'unknown';

interface Peer {
  all: number;
  direct: number;
  heardAt: number;
}

export class PeerNumbers {
  readonly #peers = new Map<string, Peer>();
  readonly #greeted = new Map<string, { readonly nonce: string; readonly at: number; beats: number }>();

  /** Reports whether this process accepts messages from another process. */
  knows(sender: string): boolean {
    return this.#peers.has(sender);
  }

  /** Classifies a message by its number. The sender must be authentic. @param at monotonic milliseconds */
  judge(sender: string, channel: Channel, number: number, at: number): Order {
    const peer = this.#peers.get(sender);
    if (peer === undefined) return 'unknown';
    const last = peer[channel];
    if (number <= last) return 'repeated';
    peer[channel] = number;
    peer.heardAt = at;
    return number === last + 1 ? 'next' : 'gap';
  }

  /**
   * Records a greeting to a sender whose numbers are not known. Returns false if the sender must not be greeted now.
   * @param nonce random text that the sender must send back
   */
  greet(sender: string, nonce: string, at: number): boolean {
    const former = this.#greeted.get(sender);
    if (former !== undefined && at - former.at < greetMs) return false;
    if (former === undefined && this.#greeted.size >= maxGreeted) return false;
    this.#greeted.set(sender, { nonce, at, beats: former?.beats ?? 0 });
    return true;
  }

  /** Records a message to all processes that is ignored because its sender has not answered the greeting yet. */
  ignored(sender: string, number: number, isBeat: boolean): void {
    const greeted = this.#greeted.get(sender);
    if (greeted !== undefined && isBeat && number === greeted.beats + 1) greeted.beats = number;
  }

  /**
   * Records the last numbers of a process that answered a greeting.
   * @param numbers `all`: of its last message to all processes; `direct`: of the answer itself
   * @returns null if this does not answer the last greeting; `complete` if all previous messages to all processes were
   *   beats
   */
  answered(
    sender: string,
    nonce: string,
    numbers: { readonly all: number; readonly direct: number },
    at: number,
  ): 'complete' | 'incomplete' | null {
    const greeted = this.#greeted.get(sender);
    if (greeted === undefined || greeted.nonce !== nonce || at - greeted.at >= answerMs) return null;
    this.#greeted.delete(sender);
    this.#peers.set(sender, { ...numbers, heardAt: at });
    return numbers.all === greeted.beats ? 'complete' : 'incomplete';
  }

  /**
   * Forgets processes that have been silent for ten seconds, and greetings without an answer.
   * @returns whether a process was forgotten; if so, its last messages may be lost
   */
  forgetSilent(at: number): boolean {
    const silent = [...this.#peers].filter(([, { heardAt }]) => at - heardAt >= silentMs);
    for (const [sender] of silent) this.#peers.delete(sender);
    for (const [sender, greeted] of this.#greeted) if (at - greeted.at >= answerMs) this.#greeted.delete(sender);
    return silent.length > 0;
  }

  /** Forgets all processes, because messages may have been lost while this process had no connection. */
  clear(): void {
    this.#peers.clear();
    this.#greeted.clear();
  }
}
