/** The part of an output stream's interface that the program uses. */
export interface Sink {
  write(text: string): unknown;
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  rows?: number | undefined;
}
