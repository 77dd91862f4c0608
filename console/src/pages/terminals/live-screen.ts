import { isFinalRefusal } from '../../../../client/src/terminal-reattach.ts';
import { type LinkState, TerminalLink } from '../../api/terminals/terminal-link.ts';
import {
  attachTerminal,
  openTerminalSocket,
  refetchTerminal,
  type TerminalMode,
} from '../../api/terminals/terminals.ts';
import { type ExtraKey, extraKey, pasteable, runsAtOnce, withCtrl } from '../../terminal/keys.ts';
import { Screen } from '../../terminal/screen.ts';
import { markControl } from './control-mark.ts';

/** Delay in milliseconds between a size change and the resize request. */
const resizeDelayMs = 80;
/** Maximum number of lines in the scrollback. */
const scrollback = 5_000;

export interface LiveScreenOptions {
  readonly session_id: string;
  readonly mode: TerminalMode;
  readonly fontSize: number;
  readonly screenReader: boolean;
}

export interface LiveScreenEvents {
  stateChanged(state: LinkState): void;
  /** Called when Ctrl is set to modify the next key, and when it is reset. */
  ctrlChanged(held: boolean): void;
  bell(): void;
  /**
   * Called with pasted text that a shell may run immediately. After the operator confirms it, the receiver calls {@link
   * Screen.paste}.
   */
  pasteRequested(text: string): void;
  linkRequested(url: string): void;
  searchRequested(): void;
  /** Called when the operator presses the shortcut that leaves the terminal. */
  left(): void;
}

export const isOver = ({ kind }: LinkState): boolean => kind === 'exited' || kind === 'ended';

export class LiveScreen {
  readonly screen: Screen;
  readonly #link: TerminalLink;
  readonly #events: LiveScreenEvents;
  #controls: boolean;
  #ctrlHeld = false;
  #resizeTimer = 0;

  constructor(container: HTMLElement, { session_id, mode, ...options }: LiveScreenOptions, events: LiveScreenEvents) {
    this.#events = events;
    this.#controls = mode === 'control';
    this.screen = new Screen(
      container,
      { ...options, readOnly: mode === 'view', scrollback },
      {
        typed: (text) => this.type(text),
        typedBytes: (bytes) => this.#link.typeBytes(bytes),
        pasted: (text) => this.#paste(text),
        bell: events.bell,
        link: events.linkRequested,
        left: events.left,
        searchRequested: events.searchRequested,
        containerResized: () => this.#fitSoon(),
      },
    );
    this.#link = new TerminalLink(
      mode,
      {
        attach: (newMode) => attachTerminal(session_id, newMode),
        open: openTerminalSocket,
        isFinal: isFinalRefusal,
        after: (ms, act) => {
          const timer = window.setTimeout(act, ms);
          return () => window.clearTimeout(timer);
        },
      },
      {
        fresh: () => this.screen.clear(),
        shown: (bytes) => this.screen.write(bytes, () => this.#link.drained(bytes.length)),
        sized: (cols, rows) => {
          this.screen.resize(cols, rows);
          this.#fitSoon();
        },
        changed: (state) => this.#onState(session_id, state),
      },
    );
    window.addEventListener('online', this.#retryNow);
    document.addEventListener('visibilitychange', this.#retryNow);
  }

  /** @param wsUrl WebSocket URL of a terminal session that was just opened; null attaches to an existing one */
  start(wsUrl: string | null): void {
    this.#link.start(wsUrl);
    if (this.#controls) this.screen.focus();
  }

  /** Sends text as input. Applies Ctrl if it is set for the next key. */
  type(text: string): void {
    this.#link.type(this.#ctrlHeld ? withCtrl(text) : text);
    if (this.#ctrlHeld) this.holdCtrl(false);
  }

  typeKey(key: ExtraKey): void {
    this.#link.type(extraKey(key, this.screen.applicationCursor));
  }

  holdCtrl(held: boolean): void {
    this.#ctrlHeld = held;
    this.#events.ctrlChanged(held);
  }

  /** Attaches again, as a viewer or as the controller. */
  take(mode: TerminalMode): void {
    this.#link.take(mode);
    if (mode === 'control') this.screen.focus();
  }

  setPreferences({ fontSize, screenReader }: Pick<LiveScreenOptions, 'fontSize' | 'screenReader'>): void {
    this.screen.fontSize = fontSize;
    this.screen.screenReader = screenReader;
    const { state } = this.#link;
    if (state.kind === 'open' && state.mode === 'control') this.#fit();
  }

  dispose(): void {
    window.clearTimeout(this.#resizeTimer);
    window.removeEventListener('online', this.#retryNow);
    document.removeEventListener('visibilitychange', this.#retryNow);
    this.#link.close();
    this.screen.dispose();
  }

  readonly #retryNow = () => this.#link.retryNow();

  #paste(text: string): void {
    if (!this.#controls) return;
    if (runsAtOnce(pasteable(text))) this.#events.pasteRequested(text);
    else this.screen.paste(text);
  }

  #onState(session_id: string, state: LinkState): void {
    this.#events.stateChanged(state);
    if (state.kind !== 'connecting') refetchTerminal(session_id);
    if (isOver(state)) markControl(session_id, false);
    if (state.kind !== 'open') return;
    this.#controls = state.mode === 'control';
    this.screen.readOnly = !this.#controls;
    markControl(session_id, this.#controls);
    this.#fitSoon();
  }

  /** Viewers keep the size that the controlling screen sets. */
  #fitSoon(): void {
    window.clearTimeout(this.#resizeTimer);
    this.#resizeTimer = window.setTimeout(() => {
      const { state } = this.#link;
      if ((state.kind === 'open' && this.#controls) || isOver(state)) this.#fit();
    }, resizeDelayMs);
  }

  /** Fits the screen to its container. If the connection is open, also resizes the shell. */
  #fit(): void {
    const fitting = this.screen.fittingSize();
    if (fitting === null) return;
    const { cols, rows } = this.screen.size;
    if (fitting.cols === cols && fitting.rows === rows) return;
    this.screen.resize(fitting.cols, fitting.rows);
    if (this.#link.state.kind === 'open') this.#link.resize(fitting.cols, fitting.rows);
  }
}
