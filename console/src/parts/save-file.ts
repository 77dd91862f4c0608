/** Offers what was fetched as a file to be kept, under this name. */
export function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Some browsers read it only after this.
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
