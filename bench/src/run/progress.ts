const began = performance.now();

/** Prints a finished measurement to standard error, with the seconds since the bench started. */
export function printProgress(text: string): void {
  console.error(`  ${((performance.now() - began) / 1000).toFixed(0)} s: ${text}`);
}
