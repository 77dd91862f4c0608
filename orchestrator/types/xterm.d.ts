/**
 * What the types of xterm's add-ons name as `@xterm/xterm`. Here they run in `@xterm/headless`, and the types of the one
 * for browsers would bring the whole DOM into the types of a program that has none.
 */
export type { IBufferRange, IMarker, ITerminalAddon, Terminal } from '@xterm/headless';
