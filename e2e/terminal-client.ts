import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { eventually } from './eventually.ts';
import type { Orchestrator } from './stage.ts';

/** A JSON message from the orchestrator on a terminal's WebSocket. */
interface Notice {
  type: 'resize' | 'exit' | 'error';
  [field: string]: unknown;
}

/** A terminal client that uses the API's WebSocket. */
export class TerminalScreen {
  readonly notices: Notice[] = [];
  /** WebSocket close code, such as 1006 after a broken connection; null while the connection is open. */
  closed: number | null = null;
  readonly #ws: WebSocket;
  readonly #pieces: Buffer[] = [];

  private constructor(ws: WebSocket) {
    this.#ws = ws;
    ws.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#pieces.push(data);
      else this.notices.push(JSON.parse(data.toString()) as Notice);
    });
    ws.on('close', (code) => {
      this.closed = code;
    });
    ws.on('error', () => {});
  }

  /** Connects to a terminal. @param address URL or path, as in `ws_url` */
  static async connect(orchestrator: Pick<Orchestrator, 'dataDir' | 'url'>, address: string): Promise<TerminalScreen> {
    const ca = readFileSync(join(orchestrator.dataDir, 'api.crt'), 'utf8');
    const ws = new WebSocket(new URL(address, orchestrator.url), { ca, perMessageDeflate: false });
    const screen = new TerminalScreen(ws);
    await new Promise((resolve, reject) => {
      ws.once('open', resolve);
      ws.once('error', reject);
    });
    return screen;
  }

  /** All received output. */
  get bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  type(text: string): void {
    this.#ws.send(Buffer.from(text));
  }

  resize(cols: number, rows: number): void {
    this.#ws.send(JSON.stringify({ type: 'resize', cols, rows }));
  }

  /** Waits until the output matches. @returns the match */
  async shows(what: RegExp): Promise<RegExpExecArray> {
    return await eventually(`the terminal output matches ${what}`, async () => {
      const found = what.exec(this.bytes.toString());
      if (found === null && this.closed !== null)
        throw new Error(
          `the connection was closed with ${this.closed}: ${JSON.stringify(this.notices)} ${this.bytes.subarray(-500)}`,
        );
      return found;
    });
  }

  /** Waits until the orchestrator closes the connection. @returns the last notice */
  async end(): Promise<Notice | undefined> {
    await eventually('the connection is closed', async () => this.closed);
    return this.notices.at(-1);
  }

  /** Closes the connection without a WebSocket close message, as when the network is lost. */
  cut(): void {
    this.#ws.terminate();
  }
}
