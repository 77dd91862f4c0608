import { type IPty, spawn } from '@lydell/node-pty';
import { Terminal } from '@xterm/headless';
import type { Step } from '../../tools/docs/console.ts';
import { eventually } from '../eventually.ts';
import type { Machine } from './machine.ts';

const cols = 110;
const rows = 40;
/** Milliseconds without output after which a question is considered complete. */
const quietMs = 150;

/** An emulated terminal with a login shell on a machine. */
export class Seat {
  readonly #pty: IPty;
  readonly #screen = new Terminal({ cols, rows, scrollback: 20_000, allowProposedApi: true });
  #lastByte = performance.now();
  /** Number of output chunks that the terminal emulator has not processed yet. */
  #pending = 0;
  #ended = false;

  constructor(machine: Machine, user: string) {
    const inside = ['script', '--quiet', '--return', '--command', `su --login ${user}`, '/dev/null'];
    const [file, ...args] = machine.entering(inside, { TERM: 'xterm-256color' });
    this.#pty = spawn(file as string, args, { cols, rows });
    this.#pty.onData((text) => {
      this.#lastByte = performance.now();
      this.#pending++;
      this.#screen.write(text, () => {
        this.#pending--;
      });
    });
    this.#pty.onExit(() => {
      this.#ended = true;
    });
    // Forwards the emulator's responses to terminal queries.
    this.#screen.onData((answer) => this.#pty.write(answer));
  }

  /** Index of the cursor's line in all output, from 0. */
  get #at(): number {
    const { baseY, cursorY } = this.#screen.buffer.active;
    return baseY + cursorY;
  }

  /** Returns the lines from an index to the cursor's line. Joins wrapped lines. */
  #lines(from: number): string[] {
    const lines: string[] = [];
    for (let at = from; at <= this.#at; at++) {
      const line = this.#screen.buffer.active.getLine(at);
      const text = line?.translateToString(true) ?? '';
      if (line?.isWrapped && lines.length > 0) lines.push((lines.pop() as string) + text);
      else lines.push(text);
    }
    return lines;
  }

  get #line(): string {
    return this.#lines(this.#at).join('').trimEnd();
  }

  /** The lines of the current screen, for error messages. */
  get view(): string {
    return this.#lines(Math.max(0, this.#at - rows)).join('\n');
  }

  /** Waits until the cursor's line is the prompt, at index `from` or later. Calls `answer` while waiting. */
  async #prompts(prompt: string, from: number, answer: () => void, timeoutMs: number): Promise<void> {
    await eventually(
      `the prompt "${prompt}" follows\n${this.view}`,
      async () => {
        if (this.#pending > 0) return null;
        if (this.#at >= from && this.#line === prompt) return true;
        if (this.#ended) throw new Error('the terminal has ended');
        answer();
        return null;
      },
      timeoutMs,
    );
  }

  /**
   * Waits for the prompt, types a command, and waits for the next prompt.
   * @param next prompt after the command
   * @param answers answers to the command's questions, in this order; typed answers are removed from the list
   * @returns the output lines of the command
   */
  async type(
    { prompt }: Step,
    command: string,
    next: string,
    answers: string[],
    timeoutMs = 120_000,
  ): Promise<string[]> {
    await this.#prompts(prompt, 0, () => {}, timeoutMs);
    let from = this.#at;
    for (const line of command.split('\n')) {
      const withoutSpaces = (text: string) => text.replaceAll(/\s+/g, '');
      this.#pty.write(line);
      await eventually(`the terminal shows the typed line "${line}"`, async () =>
        this.#pending === 0 && withoutSpaces(this.#lines(from).join('')).endsWith(withoutSpaces(line)) ? true : null,
      );
      from = this.#at + 1;
      this.#pty.write('\r');
    }
    let answered = '';
    await this.#prompts(
      next,
      from,
      () => {
        // Muster's prompts mark an open question with ◆. For other programs, the question is the cursor's line.
        const marked = this.#lines(from).findLast((line) => line.includes('◆'));
        const question = marked ?? (/[:?]$/.test(this.#line) ? `${this.#at} ${this.#line}` : undefined);
        const quiet = performance.now() - this.#lastByte > quietMs;
        if (question === undefined || !quiet || question === answered || answers.length === 0) return;
        answered = question;
        for (const key of (answers.shift() as string).replaceAll('⏎', '\r')) this.#pty.write(key);
      },
      timeoutMs,
    );
    return this.#lines(from).slice(0, -1);
  }

  end(): void {
    this.#pty.kill('SIGKILL');
    this.#screen.dispose();
  }
}
