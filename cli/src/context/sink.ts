/** The part of a stream that is written to. */
export interface Sink {
  write(text: string): unknown;
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  rows?: number | undefined;
}
