import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';
import type { Stage } from './stage.ts';

const run = promisify(execFile);

/** A real terminal emulator with a shell, whose screen a test can read and to which it can type. */
export class Tmux {
  readonly #socket: string;
  readonly #env: NodeJS.ProcessEnv;

  /** @param onEnd registers the cleanup function, which works even if the stage has already been removed */
  static async start(
    stage: Stage,
    env: NodeJS.ProcessEnv,
    { cols, rows }: { cols: number; rows: number },
    onEnd: (end: () => void) => void,
  ): Promise<Tmux> {
    // Removes CI, because programs are not interactive on a build server, and TMUX, because tmux refuses to nest.
    const own = { CI: undefined, TMUX: undefined, ENV: undefined, LC_ALL: 'C.UTF-8', PS1: 'near> ', SHELL: '/bin/sh' };
    const tmux = new Tmux(join(stage.folder('tmux'), 'socket'), stage.environment({ ...env, ...own }));
    const size = ['-x', String(cols), '-y', String(rows)];
    const pid = await tmux.#tmux('new-session', '-d', ...size, '-P', '-F', '#{pid}', '/bin/sh');
    onEnd(() => {
      try {
        process.kill(Number(pid), 'SIGTERM');
      } catch {
        // tmux has exited.
      }
    });
    return tmux;
  }

  private constructor(socket: string, env: NodeJS.ProcessEnv) {
    this.#socket = socket;
    this.#env = env;
  }

  async #tmux(...words: string[]): Promise<string> {
    const own = ['-u', '-f', '/dev/null', '-S', this.#socket];
    return (await run('tmux', [...own, ...words], { env: this.#env, timeout: 120_000 })).stdout;
  }

  async type(text: string): Promise<void> {
    await this.#tmux('send-keys', '-l', text);
  }

  /** Presses keys. @param keys tmux key names, such as `Enter`, `Escape`, and `C-c` */
  async press(...keys: string[]): Promise<void> {
    await this.#tmux('send-keys', ...keys);
  }

  /** Types a line and presses Enter. */
  async enter(line: string): Promise<void> {
    await this.type(line);
    await this.press('Enter');
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.#tmux('resize-window', '-x', String(cols), '-y', String(rows));
  }

  async paste(file: string): Promise<void> {
    await this.#tmux('load-buffer', file);
    await this.#tmux('paste-buffer', '-d');
  }

  /** Writes all subsequent output to a file. */
  async keep(file: string): Promise<void> {
    await this.#tmux('pipe-pane', '-o', `exec cat > '${file}'`);
  }

  /** Returns the lines of the current screen. */
  async screen(): Promise<string[]> {
    return (await this.#tmux('capture-pane', '-p')).split('\n').slice(0, -1);
  }

  /** Returns the current screen with color sequences. */
  async colours(): Promise<string> {
    return await this.#tmux('capture-pane', '-p', '-e');
  }

  /** Returns the terminal modes that programs set, such as alternate screen, mouse, and cursor. */
  async modes(): Promise<string> {
    const names = ['alternate_on', 'mouse_any_flag', 'cursor_flag', 'keypad_flag', 'insert_flag', 'origin_flag'];
    return (await this.#tmux('display-message', '-p', names.map((name) => `${name}=#{${name}}`).join(' '))).trim();
  }

  /** Waits until the screen satisfies the condition. */
  async sees(what: string, is: (lines: string[]) => boolean, timeoutMs?: number): Promise<void> {
    const look = async (): Promise<true> => {
      const lines = await this.screen();
      if (!is(lines)) throw new Error(`the screen is\n${lines.join('\n').trimEnd()}`);
      return true;
    };
    await eventually(`the terminal shows ${what}`, look, timeoutMs);
  }

  /** Waits until a line begins with this text. */
  async seesLine(begin: string, timeoutMs?: number): Promise<void> {
    await this.sees(JSON.stringify(begin), (lines) => lines.some((line) => line.startsWith(begin)), timeoutMs);
  }
}
