/**
 * Replaces `@xterm/xterm` in the types of xterm's add-ons. Here the add-ons run in `@xterm/headless`, and the browser
 * package would add the types of the DOM to a program without one.
 */
export type { IBufferRange, IMarker, ITerminalAddon, Terminal } from '@xterm/headless';
