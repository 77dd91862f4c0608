/**
 * Replaces `@xterm/xterm` in the types of xterm's add-ons. In this program, the add-ons run with `@xterm/headless`, and
 * the browser package would add DOM types to a program without a DOM.
 */
export type { IBufferRange, IMarker, ITerminalAddon, Terminal } from '@xterm/headless';
