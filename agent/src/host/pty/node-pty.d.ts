/** The native addon of node-pty, which opens and resizes terminals. The agent reads from and writes to them itself. */
declare module '@lydell/node-pty/requireBinary.js' {
  interface TerminalBinding {
    /** @throws Error */
    open(cols: number, rows: number): { master: number; slave: number; pty: string };
    /** @throws Error on failure, including when the file is closed */
    resize(fd: number, cols: number, rows: number): void;
  }
  /** @throws Error if the package has no binary for this system */
  export function requireBinary(name: 'pty.node'): TerminalBinding;
}
