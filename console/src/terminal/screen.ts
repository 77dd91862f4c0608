import '@xterm/xterm/css/xterm.css';
import './style-attributes.ts';
import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { WebLinksAddon } from '@xterm/addon-web-links';
import { Terminal } from '@xterm/xterm';
import type { ReplayScreen } from './hidden-screen.ts';
import { pasteable } from './keys.ts';
import { followPalette } from './palette.ts';
import { emptied, Snapshots } from './snapshots.ts';

/** A terminal screen: xterm with the console's settings. */

export interface ScreenEvents {
  typed?(text: string): void;
  typedBytes?(bytes: Uint8Array<ArrayBuffer>): void;
  /** Called with pasted text. The listener decides whether to call {@link Screen.paste}. */
  pasted?(text: string): void;
  bell?(): void;
  /** Called when the operator clicks a link. The screen does not open it. */
  link?(url: string): void;
  /** Called when the operator presses the shortcut that leaves the terminal. */
  left?(): void;
  searchRequested?(): void;
  /** Called when the container's size changes. */
  containerResized?(): void;
}

export interface ScreenOptions {
  readonly fontSize: number;
  readonly screenReader: boolean;
  readonly readOnly: boolean;
  readonly scrollback: number;
}

/** The terminal font of theme.css. */
const shippedFont = '"JetBrains Mono Terminal"';
/** Fonts of the operating system, for characters that the shipped font lacks, such as those of boxes. */
const systemFonts = 'ui-monospace, "SF Mono", Menlo, Consolas, "Noto Sans Mono", "DejaVu Sans Mono", monospace';
const shippedFonts = `${shippedFont}, ${systemFonts}`;
/** Keys that scroll through the scrollback while Shift is pressed. */
const scrollingKeys = new Set(['PageUp', 'PageDown', 'Home', 'End']);
const highlight = {
  matchBackground: '#6b5a1e',
  matchOverviewRuler: '#e6c36a',
  activeMatchBackground: '#b7791f',
  activeMatchColorOverviewRuler: '#ffb020',
};

export class Screen implements ReplayScreen {
  readonly terminal: Terminal;
  readonly #fit = new FitAddon();
  readonly #search = new SearchAddon();
  readonly #snapshots: Snapshots;
  readonly #cleanUps: (() => void)[] = [];

  constructor(container: HTMLElement, options: ScreenOptions, events: ScreenEvents) {
    const ask = (_: MouseEvent, text: string) => {
      const link = webLink(text);
      if (link !== null) events.link?.(link);
    };
    this.terminal = new Terminal({
      allowProposedApi: true,
      cursorBlink: !window.matchMedia('(prefers-reduced-motion: reduce)').matches,
      disableStdin: options.readOnly,
      fontFamily: document.fonts.check(`1em ${shippedFont}`) ? shippedFonts : systemFonts,
      fontSize: options.fontSize,
      linkHandler: { activate: ask, allowNonHttpProtocols: false },
      minimumContrastRatio: 4.5,
      screenReaderMode: options.screenReader,
      scrollback: options.scrollback,
    });
    for (const addon of [this.#fit, this.#search, new WebLinksAddon(ask)]) this.terminal.loadAddon(addon);
    this.#snapshots = new Snapshots(this.terminal);
    this.#cleanUps.push(
      followPalette((theme) => {
        this.terminal.options.theme = theme;
        // The container's height is not a multiple of the row height. The background fills the rest.
        container.style.backgroundColor = theme.background ?? '';
      }),
    );
    this.terminal.open(container);
    this.#loadFont(events);
    if (events.typed) this.terminal.onData(events.typed.bind(events));
    this.terminal.onBinary((text) =>
      events.typedBytes?.(Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff)),
    );
    this.terminal.onBell(() => events.bell?.());
    this.terminal.attachCustomKeyEventHandler((event) => this.#ownKey(event, events));
    // Listens in the capture phase, because xterm would otherwise send the text immediately.
    const onPaste = (event: ClipboardEvent) => {
      event.preventDefault();
      event.stopPropagation();
      const text = event.clipboardData?.getData('text/plain') ?? '';
      if (text !== '') events.pasted?.(text);
    };
    container.addEventListener('paste', onPaste, true);
    const observer = new ResizeObserver(() => events.containerResized?.());
    observer.observe(container);
    this.#cleanUps.push(() => {
      observer.disconnect();
      container.removeEventListener('paste', onPaste, true);
    });
  }

  /** Uses the shipped font once it is loaded. Its characters have another size. */
  #loadFont(events: ScreenEvents): void {
    if (this.terminal.options.fontFamily === shippedFonts) return;
    let isDisposed = false;
    this.#cleanUps.push(() => {
      isDisposed = true;
    });
    const use = ({ length }: readonly FontFace[]) => {
      if (isDisposed || length === 0) return;
      this.terminal.options.fontFamily = shippedFonts;
      events.containerResized?.();
    };
    // Errors are ignored, because the terminal is complete without this font.
    void document.fonts.load(`1em ${shippedFont}`).then(use, () => {});
  }

  /** @param done called when the screen has processed the data */
  write(data: string | Uint8Array, done?: () => void): void {
    this.terminal.write(data, done);
  }

  /** Clears the screen after all pending writes. */
  clear(): void {
    this.terminal.write(emptied);
  }

  get size(): { cols: number; rows: number } {
    return { cols: this.terminal.cols, rows: this.terminal.rows };
  }

  resize(cols: number, rows: number): void {
    if (cols !== this.terminal.cols || rows !== this.terminal.rows) this.terminal.resize(cols, rows);
  }

  /** Returns the terminal size that fits the container, or null while the container is not visible. */
  fittingSize(): { cols: number; rows: number } | null {
    const size = this.#fit.proposeDimensions();
    if (size === undefined || !(size.cols >= 2) || !(size.rows >= 1)) return null;
    return { cols: Math.min(size.cols, 1000), rows: Math.min(size.rows, 1000) };
  }

  /** Sends text as input, as a bracketed paste if the shell enabled it. */
  paste(text: string): void {
    this.terminal.paste(pasteable(text));
  }

  set fontSize(pixels: number) {
    this.terminal.options.fontSize = pixels;
  }

  set screenReader(on: boolean) {
    this.terminal.options.screenReaderMode = on;
  }

  set readOnly(on: boolean) {
    this.terminal.options.disableStdin = on;
  }

  get applicationCursor(): boolean {
    return this.terminal.modes.applicationCursorKeysMode;
  }

  focus(): void {
    this.terminal.focus();
  }

  find(text: string, backwards: boolean): boolean {
    const options = { decorations: highlight };
    return backwards ? this.#search.findPrevious(text, options) : this.#search.findNext(text, options);
  }

  endFind(): void {
    this.#search.clearDecorations();
    this.terminal.clearSelection();
  }

  /** Returns escape sequences that restore this state on an empty screen of the same size. */
  snapshot(): string {
    return this.#snapshots.take();
  }

  dispose(): void {
    for (const cleanUp of this.#cleanUps) cleanUp();
    this.terminal.dispose();
  }

  /** Returns whether xterm handles the key. */
  #ownKey(event: KeyboardEvent, events: ScreenEvents): boolean {
    // A read-only screen leaves keys to the page, because handling Tab would trap the keyboard focus.
    const scrolls = event.shiftKey && scrollingKeys.has(event.key);
    if (this.terminal.options.disableStdin && !scrolls && !(event.ctrlKey && event.shiftKey)) return false;
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
    const key = event.key.toLowerCase();
    // Leaves Ctrl-Shift-V to the browser, which pastes.
    if (key === 'v') return false;
    if (!['l', 'c', 'f'].includes(key)) return true;
    event.preventDefault();
    if (event.type !== 'keydown') return false;
    if (key === 'l') events.left?.();
    else if (key === 'f') events.searchRequested?.();
    else if (this.terminal.hasSelection()) void navigator.clipboard?.writeText(this.terminal.getSelection());
    return false;
  }
}

/**
 * Returns a link's normalized URL, or null unless it is an HTTP or HTTPS URL. Normalizing shows look-alike letters as
 * Punycode.
 */
function webLink(text: string): string | null {
  const url = URL.parse(text);
  return url !== null && ['http:', 'https:'].includes(url.protocol) ? url.href : null;
}
