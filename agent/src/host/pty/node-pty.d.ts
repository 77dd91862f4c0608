/** The part of node-pty that opens terminals; what is around it in that package reads and writes them in its own way. */
declare module '@lydell/node-pty/requireBinary.js' {
  interface TerminalBinding {
    /** @throws Error */
    open(cols: number, rows: number): { master: number; slave: number; pty: string };
    /** @throws Error also when the file is closed */
    resize(fd: number, cols: number, rows: number): void;
  }
  /** @throws Error when there is none for this system */
  export function requireBinary(name: 'pty.node'): TerminalBinding;
}
