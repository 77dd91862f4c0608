import { type IPty, spawn } from '@lydell/node-pty';
import { Terminal } from '@xterm/headless';
import type { Step } from '../../tools/docs/console.ts';
import { eventually } from '../eventually.ts';
import type { Machine } from './machine.ts';

const cols = 110;
const rows = 40;
/** Time without output after which a question in a terminal is complete. */
const quietMs = 150;

/** A user at an emulated terminal, signed in on a machine. */
export class Seat {
  readonly #pty: IPty;
  readonly #screen = new Terminal({ cols, rows, scrollback: 20_000, allowProposedApi: true });
  #lastByte = performance.now();
  /** Amount of written data that is not on the screen yet. */
  #pending = 0;
  #ended = false;

  /** @param user of that machine; starts a login shell in the user's home */
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
    // Answers queries of programs, like a real terminal.
    this.#screen.onData((answer) => this.#pty.write(answer));
  }

  /** Number of the cursor's line, counted from the first line of all output. */
  get #at(): number {
    const { baseY, cursorY } = this.#screen.buffer.active;
    return baseY + cursorY;
  }

  /** The text from a line to the cursor's line; joins wrapped lines. */
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

  /** The current screen, for diagnosis. */
  get view(): string {
    return this.#lines(Math.max(0, this.#at - rows)).join('\n');
  }

  /** Waits for the prompt of the shell, from a line onward. */
  async #prompts(prompt: string, from: number, answer: () => void, timeoutMs: number): Promise<void> {
    await eventually(
      `${prompt} after\n${this.view}`,
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
   * Types a command and waits for the next prompt.
   * @param command typed unchanged
   * @param next the prompt after the command
   * @param answers typed at questions, in this order
   * @returns the lines that the command showed
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
      const bare = (text: string) => text.replaceAll(/\s+/g, '');
      this.#pty.write(line);
      await eventually(`${line} is typed`, async () =>
        this.#pending === 0 && bare(this.#lines(from).join('')).endsWith(bare(line)) ? true : null,
      );
      from = this.#at + 1;
      this.#pty.write('\r');
    }
    let asked = '';
    await this.#prompts(
      next,
      from,
      () => {
        // Prompts mark a question with ◆ while it waits, and differently once it has an answer. A question of another
        // program is in the cursor's line.
        const marked = this.#lines(from).findLast((line) => line.includes('◆'));
        const question = marked ?? (/[:?]$/.test(this.#line) ? `${this.#at} ${this.#line}` : undefined);
        const quiet = performance.now() - this.#lastByte > quietMs;
        if (question === undefined || !quiet || question === asked || answers.length === 0) return;
        asked = question;
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
