const began = performance.now();

/** Prints what a bench has just measured, with the seconds since its start, to standard error. */
export function printProgress(text: string): void {
  console.error(`  ${((performance.now() - began) / 1000).toFixed(0)} s: ${text}`);
}
